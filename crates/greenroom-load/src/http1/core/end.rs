//! Connections that end, and requests that fail with them.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use super::{Core, Happened};
use crate::http1::connection::{Connection, Flight, Phase};
use crate::record::FailureKind;

/// The time that a server has to close a connection after it announced to: 1 s.
const LINGER_NS_MAX: u64 = 1_000_000_000;

impl Core {
    /// Closes a connection; its requests without a response get none.
    pub(in crate::http1) fn close(&mut self, key: usize) -> Happened {
        self.fail(
            key,
            FailureKind::ClosedEarly,
            &"the connection was closed before the response was whole",
        )
    }

    pub(super) fn broken(&mut self, key: usize, error: &io::Error) -> Happened {
        let kind = match self.connections[key].phase() {
            Phase::Opening => FailureKind::of_connect(error),
            _ => FailureKind::of_transfer(error),
        };
        self.fail(key, kind, error)
    }

    /// Ends a connection; its requests without a response fail.
    pub(super) fn fail(&mut self, key: usize, kind: FailureKind, reason: &dyn Display) -> Happened {
        let connection = self.remove(key);
        for flight in connection.flights() {
            self.note_failure(flight, kind, reason);
        }
        self.gone(&connection)
    }

    fn remove(&mut self, key: usize) -> Connection {
        if self.capturing == Some(key) {
            self.capturing = None;
        }
        self.connections.remove(key)
    }

    fn gone(&mut self, connection: &Connection) -> Happened {
        let unconnected = connection.phase() == Phase::Opening;
        if unconnected {
            self.connect_failed();
        }
        Happened::Gone { unconnected }
    }

    pub(super) fn note_failure(
        &mut self,
        flight: &Flight,
        kind: FailureKind,
        reason: &dyn Display,
    ) {
        let now = self.clock.now();
        self.last_ns = self.last_ns.max(now.min(self.sending_ends));
        let time = (flight.intended, now);
        self.recorder.failed(kind, time, || reason.to_string());
    }

    pub(super) fn connect_failed(&mut self) {
        if let Some(failed) = &mut self.failed_attempts {
            *failed += 1;
        }
    }

    /// Ends connections whose oldest request has timed out.
    pub(in crate::http1) fn sweep(&mut self, gone: &mut Vec<Happened>) {
        let now = self.clock.now();
        let is_late = |connection: &Connection| match connection.phase() {
            Phase::Lingering { since } => now.saturating_sub(since) >= LINGER_NS_MAX,
            _ => connection
                .flights()
                .front()
                .is_some_and(|flight| self.has_timed_out(flight, now)),
        };
        // Collected first, as ending a connection changes the slab.
        let late: Vec<usize> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_late(connection))
            .map(|(key, _)| key)
            .collect();
        gone.extend(late.into_iter().map(|key| self.time_out(key, now)));
    }

    fn has_timed_out(&self, flight: &Flight, now: u64) -> bool {
        now.saturating_sub(flight.begun) >= self.timeout_ns
    }

    /// Ends a connection whose oldest request timed out; the requests behind it are lost, but were
    /// not late themselves.
    fn time_out(&mut self, key: usize, now: u64) -> Happened {
        let connection = self.remove(key);
        let reason = format!(
            "no response within {:?}",
            Duration::from_nanos(self.timeout_ns)
        );
        for flight in connection.flights() {
            match connection.phase() {
                _ if !self.has_timed_out(flight, now) => {
                    let reason = "the one before on the same connection timed out";
                    self.note_failure(flight, FailureKind::ClosedEarly, &reason);
                }
                Phase::Opening => {
                    self.note_failure(flight, FailureKind::ConnectTimeout, &reason);
                }
                _ => self.note_failure(flight, FailureKind::Timeout, &reason),
            }
        }
        self.gone(&connection)
    }
}
