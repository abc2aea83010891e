//! The sums of a stream, or of one interval of it.

use serde::Serialize;

use super::{FailureKind, Failures, Times};

/// The statuses that can be told apart; the grammar allows any three digits.
const STATUSES: std::ops::Range<u16> = 100..1000;

/// The outcomes of requests. All times in nanoseconds.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The counters.
    pub counts: Counts,
    /// Requests that got no response.
    pub failures: Failures,
    /// From the begin of connecting until the connection is established (with TLS), of new
    /// connections.
    pub connect: Times,
    /// Service time: from the sending of a request to the end of its response.
    pub processing: Times,
    /// From the sending of a request to the first byte of its response.
    pub waiting: Times,
    /// Latency of responses with a status below 400: from the intended time (closed loop: the
    /// begin of connecting or sending) to their end.
    pub good: Times,
    /// Latency of responses with other statuses.
    pub bad: Times,
    /// Time that requests had lasted when they timed out, or when the schedule ended before they
    /// were sent: their latency is at least that.
    pub timed_out: Times,
    /// Open loop: delay from a request's intended time until this program sends it, while a
    /// connection was free.
    pub lag: Times,
    statuses: Box<[u64]>,
}

/// A response that was received in full. Times are nanoseconds since the run began.
#[derive(Clone, Copy, Debug)]
pub struct ResponseRecord {
    /// The status; 200 for a WebSocket's message.
    pub status: u16,
    /// The time at which the request was due; in a closed loop the begin of its connecting or
    /// sending.
    pub intended: u64,
    /// The time at which it was sent.
    pub sent: u64,
    /// The time of the response's first byte.
    pub first_byte: u64,
    /// The time of the response's last byte.
    pub done: u64,
    /// The duration of connecting, if the request is the first of its connection.
    pub connect: Option<u64>,
    /// Bytes of its body.
    pub body_bytes: u64,
}

/// Counters of requests, connections and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Open loop: requests whose intended time has come.
    pub due: u64,
    /// Requests sent, or begun by connecting.
    pub sent: u64,
    /// Of these, later than [`Tally::LATE_NS`] after their intended time, for want of a free
    /// connection.
    pub late_for_connection: u64,
    /// Of these, those that were late because this program was.
    pub late_by_generator: u64,
    /// Connections that were established.
    pub connections: u64,
    /// Responses on a connection that had served one before.
    pub reused: u64,
    /// Responses of another length than the first one's, where that counts.
    pub other_length: u64,
    /// Connections that were closed because bytes came that no request had asked for.
    pub unasked: u64,
    /// Bytes sent, heads included; of HTTP/2 and `WebSocket` the payload.
    pub sent_bytes: u64,
    /// Bytes received, heads and framing included; of HTTP/2 and `WebSocket` the payload.
    pub received_bytes: u64,
    /// Bytes of the responses' bodies.
    pub body_bytes: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            failures: Failures::default(),
            connect: Times::default(),
            processing: Times::default(),
            waiting: Times::default(),
            good: Times::default(),
            bad: Times::default(),
            timed_out: Times::default(),
            lag: Times::default(),
            statuses: vec![0; STATUSES.len()].into_boxed_slice(),
        }
    }
}

impl Counts {
    /// Returns the number of requests sent later than [`Tally::LATE_NS`] after their intended time.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late_for_connection + self.late_by_generator
    }

    fn add(&mut self, other: &Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.late_for_connection += other.late_for_connection;
        self.late_by_generator += other.late_by_generator;
        self.connections += other.connections;
        self.reused += other.reused;
        self.other_length += other.other_length;
        self.unasked += other.unasked;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.body_bytes += other.body_bytes;
    }
}

impl Tally {
    /// The delay after the intended time beyond which a request counts as late: 1 ms.
    pub const LATE_NS: u64 = 1_000_000;

    /// The least status that is no success.
    pub(crate) const BAD_FROM: u16 = 400;

    pub(crate) fn responded(&mut self, response: &ResponseRecord) {
        let total = response.done.saturating_sub(response.intended);
        if response.status < Self::BAD_FROM {
            self.good.record(total);
        } else {
            self.bad.record(total);
        }
        self.processing
            .record(response.done.saturating_sub(response.sent));
        self.waiting
            .record(response.first_byte.saturating_sub(response.sent));
        match response.connect {
            Some(time) => self.connect.record(time),
            None => self.counts.reused += 1,
        }
        self.counts.body_bytes += response.body_bytes;
        if let Some(count) = self.status_mut(response.status) {
            *count += 1;
        }
    }

    pub(crate) fn failed(
        &mut self,
        kind: FailureKind,
        lasted: u64,
        detail: impl FnOnce() -> String,
    ) {
        self.failures.record(kind, detail);
        if kind.has_latency() {
            self.timed_out.record(lasted);
        }
    }

    fn status_mut(&mut self, status: u16) -> Option<&mut u64> {
        let index = status.checked_sub(STATUSES.start)?;
        self.statuses.get_mut(usize::from(index))
    }

    /// Iterates over the statuses that occurred, with their numbers.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        STATUSES
            .zip(self.statuses.iter().copied())
            .filter(|(_, count)| *count > 0)
    }

    /// Returns the number of requests that got a response, with any status.
    #[must_use]
    pub fn responses(&self) -> u64 {
        self.good.count() + self.bad.count()
    }

    /// Returns the number of responses whose status is not 2xx.
    #[must_use]
    pub fn not_2xx(&self) -> u64 {
        self.statuses()
            .filter(|(status, _)| !(200..300).contains(status))
            .map(|(_, count)| count)
            .sum()
    }

    /// Returns the number of requests that ended, with a response or a failure.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.responses() + self.failures.total()
    }

    /// Returns the number of requests that ended and were tried: those that an open loop never sent
    /// cost nothing.
    #[must_use]
    pub fn tried(&self) -> u64 {
        self.ended() - self.failures.count(FailureKind::NeverSent)
    }

    /// Returns the latencies of responses, and of requests that timed out with the time that they
    /// had lasted.
    #[must_use]
    pub fn latency(&self) -> Times {
        let mut all = self.good.clone();
        all.add(&self.bad);
        all.add(&self.timed_out);
        all
    }

    /// Adds the sums of another.
    pub fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.failures.add(&other.failures);
        for (mine, others) in self.times_mut().into_iter().zip(other.times()) {
            mine.add(others);
        }
        for (mine, others) in self.statuses.iter_mut().zip(&other.statuses) {
            *mine += others;
        }
    }

    /// Resets all sums, without freeing memory.
    pub(crate) fn clear(&mut self) {
        self.counts = Counts::default();
        self.failures = Failures::default();
        for times in self.times_mut() {
            times.clear();
        }
        self.statuses.fill(0);
    }

    fn times(&self) -> [&Times; 7] {
        [
            &self.connect,
            &self.processing,
            &self.waiting,
            &self.good,
            &self.bad,
            &self.timed_out,
            &self.lag,
        ]
    }

    fn times_mut(&mut self) -> [&mut Times; 7] {
        [
            &mut self.connect,
            &mut self.processing,
            &mut self.waiting,
            &mut self.good,
            &mut self.bad,
            &mut self.timed_out,
            &mut self.lag,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16) -> ResponseRecord {
        ResponseRecord {
            status,
            intended: 1_000,
            sent: 501_000,
            first_byte: 601_000,
            done: 1_001_000,
            connect: None,
            body_bytes: 5,
        }
    }

    #[test]
    fn latency_counts_from_the_intended_time() {
        let mut tally = Tally::default();
        tally.responded(&response(200));
        let millisecond = tally.latency().max().as_secs_f64();
        assert!((millisecond / 1e-3 - 1.0).abs() < 0.002, "{millisecond}");
        let service = tally.processing.max().as_secs_f64();
        assert!((service / 0.5e-3 - 1.0).abs() < 0.002, "{service}");
    }

    #[test]
    fn a_time_out_is_a_latency_and_a_refusal_is_none() {
        let mut tally = Tally::default();
        tally.failed(FailureKind::Timeout, 2_000_000_000, String::new);
        tally.failed(FailureKind::Refused, 1_000, String::new);
        assert_eq!(tally.latency().count(), 1);
        assert_eq!(tally.ended(), 2);
    }

    #[test]
    fn sums_add_up_and_clear() {
        let mut one = Tally::default();
        one.responded(&response(200));
        one.responded(&response(503));
        let mut sum = one.clone();
        sum.add(&one);
        assert_eq!(sum.statuses().collect::<Vec<_>>(), [(200, 2), (503, 2)]);
        assert_eq!((sum.responses(), sum.not_2xx(), sum.bad.count()), (4, 2, 2));
        sum.clear();
        assert_eq!((sum.ended(), sum.statuses().count()), (0, 0));
        assert_eq!(sum.counts, Counts::default());
    }
}
