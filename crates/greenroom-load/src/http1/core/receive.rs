//! Events: reading and parsing of responses.

use std::io::ErrorKind;
use std::mem;

use rustix::event::epoll::EventFlags;

use super::{Core, Happened, INPUT_BYTES};
use crate::http1::connection::{Phase, Responded};
use crate::record::{FailureKind, ResponseRecord};

/// Reads from one connection before others get theirs: 1 MiB.
const READS_MAX: usize = 16;

/// The result of one read.
enum Taken {
    /// No response is complete.
    Nothing,
    /// At least one response is complete.
    Responses,
    /// The connection is gone.
    Gone(Happened),
}

impl Core {
    /// Handles an event of the last [`Core::wait`].
    pub(in crate::http1) fn event(&mut self, index: usize) -> Happened {
        let event = self.events[index];
        let (data, flags) = (event.data, event.flags);
        if self.alarm.has_rung(data.u64()) {
            return Happened::Nothing;
        }
        let key = usize::try_from(data.u64()).unwrap_or(usize::MAX);
        // An event before this one may have closed the connection.
        let Some(connection) = self.connections.get(key) else {
            return Happened::Nothing;
        };
        let is_opening = connection.phase() == Phase::Opening;
        if is_opening || (flags.contains(EventFlags::OUT) && connection.has_unsent()) {
            let happened = self.send(key);
            if happened != Happened::Nothing || !self.connections.contains(key) {
                return happened;
            }
        }
        let ending = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        let is_opening = self.connections[key].phase() == Phase::Opening;
        if !is_opening && flags.intersects(ending | EventFlags::IN) {
            self.receive(key, flags.intersects(ending))
        } else {
            Happened::Nothing
        }
    }

    /// Reads on from connections that had too much to be read at once; edge-triggered, their event
    /// will not come again.
    pub(in crate::http1) fn read_on(&mut self, happened: &mut Vec<Happened>) {
        for key in mem::take(&mut self.unread) {
            let connection = self.connections.get(key);
            if connection.is_some_and(|connection| connection.phase() != Phase::Opening) {
                happened.push(self.receive(key, true));
            }
        }
    }

    /// Reads the available bytes; to the end of the connection if that is known to be near.
    pub(super) fn receive(&mut self, key: usize, to_the_end: bool) -> Happened {
        let mut has_responses = false;
        for _ in 0..READS_MAX {
            let connection = &mut self.connections[key];
            match connection.transport.receive(&mut self.input) {
                Ok(0) => return self.ended(key),
                Ok(length) => {
                    // A short read has emptied the socket, so epoll will report the next bytes.
                    let is_drained = length < INPUT_BYTES && connection.transport.is_plain();
                    match self.take(key, length) {
                        Taken::Nothing => {}
                        Taken::Responses => has_responses = true,
                        Taken::Gone(gone) => return gone,
                    }
                    let goes_on = to_the_end || !self.connections[key].can_take_request();
                    if is_drained && !goes_on {
                        return self.ready(key, has_responses);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.ready(key, has_responses);
                }
                Err(error) => return self.broken(key, &error),
            }
        }
        self.unread.push(key);
        self.ready(key, has_responses)
    }

    fn ready(&self, key: usize, has_responses: bool) -> Happened {
        if has_responses && self.connections[key].can_take_request() {
            Happened::Ready(key)
        } else {
            Happened::Nothing
        }
    }

    /// Parses bytes of the input; records each response that they complete.
    fn take(&mut self, key: usize, length: usize) -> Taken {
        let now = self.clock.now();
        self.recorder.tally().counts.received_bytes += length as u64;
        let mut taken = Taken::Nothing;
        let mut used = 0;
        while used < length {
            let connection = &mut self.connections[key];
            // Bytes that no request asked for: which response would be whose is not known any more.
            if connection.flights().is_empty() {
                self.recorder.tally().counts.unasked += 1;
                return Taken::Gone(self.close(key));
            }
            // Not before its first byte: one that never comes must keep no other from being first.
            if self.capturing.is_none()
                && self.recorder.wants_first()
                && connection.reader.capture()
            {
                self.capturing = Some(key);
            }
            let took = connection.take(&self.input[used..length], now, self.to_head);
            let (bytes, responded) = match took {
                Ok(took) => took,
                Err(malformed) => {
                    return Taken::Gone(self.fail(key, FailureKind::Malformed, &malformed));
                }
            };
            used += bytes;
            if let Some(responded) = responded {
                taken = Taken::Responses;
                if let Some(gone) = self.after_response(key, responded, now) {
                    return Taken::Gone(gone);
                }
            }
        }
        taken
    }

    /// Records a response, and closes its connection if that is this side's to do.
    fn after_response(&mut self, key: usize, responded: Responded, now: u64) -> Option<Happened> {
        let server_closes = responded.server_closes();
        if self.note_response(key, responded, now) {
            return None;
        }
        let connection = &mut self.connections[key];
        match (server_closes, connection.flights().is_empty()) {
            (true, true) => connection.linger(now),
            // Nothing more can be sent, but responses to what was sent before may be there.
            (false, false) if connection.phase() == Phase::Closing => {}
            _ => return Some(self.close(key)),
        }
        None
    }

    /// Records a response; returns true if its connection may be used again.
    fn note_response(&mut self, key: usize, responded: Responded, now: u64) -> bool {
        let Responded {
            flight, response, ..
        } = responded;
        self.last_ns = now;
        if let Some(mut first) = response.captured {
            first.tls = self.connections[key].transport.describe_tls();
            self.recorder.first(*first);
            self.capturing = None;
        }
        self.recorder.responded(&ResponseRecord {
            status: response.status,
            intended: flight.intended,
            sent: flight.sent,
            first_byte: flight.first_byte,
            done: now,
            connect: responded.connect,
            body_bytes: response.body_bytes,
        });
        responded.is_reusable && self.keep_alive
    }

    /// Handles a connection that the peer has closed.
    fn ended(&mut self, key: usize) -> Happened {
        if let Some(responded) = self.connections[key].end() {
            self.note_response(key, responded, self.clock.now());
        }
        self.close(key)
    }
}
