//! The outcomes of requests.

use super::connect::Failure;
use super::dispatcher::Ticket;
use super::exchange::Exchange;
use crate::record::{FailureKind, FirstResponse, Recorder, ResponseRecord};

/// Consecutive failed attempts to connect after which a thread gives up, if none succeeded.
const FAILED_ATTEMPTS_MAX: u32 = 10;

/// The recorder of a thread, with the number of requests in flight.
#[derive(Debug)]
pub(super) struct Outcomes {
    recorder: Recorder,
    in_flight: u64,
    in_flight_most: u64,
    /// The time at which sending ends.
    sending_ends: u64,
    last_ns: u64,
    failed_attempts: u32,
    was_connected: bool,
}

impl Outcomes {
    pub(super) fn new(recorder: Recorder, sending_ends: u64) -> Self {
        Self {
            recorder,
            in_flight: 0,
            in_flight_most: 0,
            sending_ends,
            last_ns: 0,
            failed_attempts: 0,
            was_connected: false,
        }
    }

    /// Returns the number of requests that were sent and did not end.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns the most requests that were in flight at once.
    pub(super) fn in_flight_most(&self) -> u64 {
        self.in_flight_most
    }

    /// Returns the time at which the last request ended; of one that failed, at most the end of
    /// sending.
    pub(super) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Returns true if further attempts are pointless. They are not while another thread of the
    /// stream had a response.
    pub(super) fn gives_up(&self) -> bool {
        let has_failed = !self.was_connected && self.failed_attempts >= FAILED_ATTEMPTS_MAX;
        has_failed && self.wants_first()
    }

    pub(super) fn wants_first(&self) -> bool {
        self.recorder.wants_first()
    }

    pub(super) fn due(&mut self, count: u64) {
        self.recorder.tally().counts.due += count;
    }

    pub(super) fn begun(&mut self, ticket: &Ticket, now: u64) {
        self.in_flight += 1;
        self.in_flight_most = self.in_flight_most.max(self.in_flight);
        let Ticket { due, free_since } = ticket;
        self.recorder.sent(due.intended, now, *free_since);
    }

    /// Records a connection that was established.
    pub(super) fn connected(&mut self) {
        self.recorder.tally().counts.connections += 1;
    }

    /// Notes that the server speaks the protocol.
    pub(super) fn proven(&mut self) {
        self.was_connected = true;
    }

    pub(super) fn sent_bytes(&mut self, count: usize) {
        self.recorder.tally().counts.sent_bytes += count as u64;
    }

    pub(super) fn received_bytes(&mut self, count: usize) {
        self.recorder.tally().counts.received_bytes += count as u64;
    }

    pub(super) fn responded(&mut self, response: &ResponseRecord, first: Option<FirstResponse>) {
        self.ended(response.done);
        if let Some(first) = first {
            self.recorder.first(first);
        }
        self.recorder.responded(response);
    }

    pub(super) fn failed(&mut self, exchange: &Exchange, failure: Failure, now: u64) {
        self.ended(now.min(self.sending_ends));
        if failure.kind == FailureKind::Handshake {
            self.failed_attempts += 1;
        }
        let time = (exchange.intended, now);
        self.recorder.failed(failure.kind, time, || failure.detail);
    }

    /// As [`Outcomes::failed`], for a request whose connection was not made.
    pub(super) fn not_connected(&mut self, exchange: &Exchange, failure: Failure, now: u64) {
        // A failed handshake is counted by `failed`, as it may also end an established connection.
        let counts_itself = failure.kind == FailureKind::Handshake;
        self.failed_attempts += u32::from(!counts_itself);
        self.failed(exchange, failure, now);
    }

    /// Records a request that was not sent between its intended time and the schedule's end.
    pub(super) fn never_sent(&mut self, time: (u64, u64)) {
        self.recorder.failed(FailureKind::NeverSent, time, || {
            "no connection was free until the end".to_owned()
        });
    }

    /// Returns the time at which [`Outcomes::flush`] is due.
    pub(super) fn flush_due(&self) -> u64 {
        self.recorder.flush_due()
    }

    pub(super) fn flush(&mut self, now: u64) {
        self.recorder.flush(now);
    }

    pub(super) fn finish(&mut self, now: u64) {
        self.recorder.finish(now);
    }

    fn ended(&mut self, now: u64) {
        self.in_flight -= 1;
        self.last_ns = self.last_ns.max(now);
    }
}
