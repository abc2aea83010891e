//! The recorder of a thread that makes load, and the batches that it sends to the reporting thread.

use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};

use super::by_rate::Ended;
use super::{ByRate, FailureKind, ResponseRecord, Tally};

/// The times of one request, for ab's `-g`. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct RequestRecord {
    /// The intended time, since the run began.
    pub intended: u64,
    /// Time of connecting.
    pub connect: u64,
    /// Time from sending to the end.
    pub processing: u64,
    /// Time from the intended sending to the end.
    pub total: u64,
    /// Time from sending to the first byte.
    pub waiting: u64,
}

/// The first response of a stream.
#[derive(Clone, Debug, Default)]
pub struct FirstResponse {
    /// Its head as received; a text of the same form for HTTP/2; empty for a WebSocket.
    pub head: Vec<u8>,
    /// Its body, at most [`FirstResponse::BODY_BYTES_MAX`] of it.
    pub body: Vec<u8>,
    /// The length of its body.
    pub body_bytes: u64,
    /// The TLS version and cipher suite, in ab's form (`TLSv1.3,TLS_AES_256_GCM_SHA384,…`).
    pub tls: Option<String>,
}

impl FirstResponse {
    /// Bytes of the body that are kept: 1 MiB.
    pub const BODY_BYTES_MAX: usize = 1024 * 1024;

    /// Returns the value of a field of the head.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        let head = String::from_utf8_lossy(&self.head);
        let mut fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    }
}

/// The measurements of one thread in one interval.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) stream: usize,
    /// Number of the thread among those of its stream.
    pub(crate) thread: usize,
    /// Begin of the interval, since the run began.
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// True if its thread sends no other.
    pub(crate) is_last: bool,
    pub(crate) tally: Box<Tally>,
    pub(crate) records: Vec<RequestRecord>,
    pub(crate) first: Option<Box<FirstResponse>>,
    /// Outcomes by rate of the whole run; only the last batch has them.
    pub(crate) by_rate: ByRate,
}

/// The recorder of one thread that makes load.
///
/// It owns its counters, so recording a response touches nothing that another thread writes. Once
/// in an interval the counters are sent to the reporting thread as a whole, and cleared ones come
/// back.
#[derive(Debug)]
pub(crate) struct Recorder {
    stream: usize,
    thread: usize,
    tally: Box<Tally>,
    begin_ns: u64,
    interval_ns: u64,
    flush_due_ns: u64,
    records: Vec<RequestRecord>,
    records_left: usize,
    first: Option<Box<FirstResponse>>,
    by_rate: ByRate,
    /// Length of the stream's first response, with which later ones are compared.
    length: Arc<OnceLock<u64>>,
    variable_length: bool,
    full: SyncSender<Batch>,
    empty: Receiver<Box<Tally>>,
}

/// The settings of a recorder: its thread, its limits, and its channels.
#[derive(Debug)]
pub(crate) struct RecorderSettings {
    pub(crate) stream: usize,
    pub(crate) thread: usize,
    pub(crate) interval_ns: u64,
    pub(crate) records_max: usize,
    pub(crate) variable_length: bool,
    pub(crate) by_rate: ByRate,
    pub(crate) length: Arc<OnceLock<u64>>,
    pub(crate) full: SyncSender<Batch>,
    pub(crate) empty: Receiver<Box<Tally>>,
}

impl Recorder {
    pub(crate) fn new(settings: RecorderSettings) -> Self {
        Self {
            stream: settings.stream,
            thread: settings.thread,
            tally: Box::default(),
            begin_ns: 0,
            interval_ns: settings.interval_ns,
            flush_due_ns: settings.interval_ns,
            records: Vec::new(),
            records_left: settings.records_max,
            first: None,
            by_rate: settings.by_rate,
            length: settings.length,
            variable_length: settings.variable_length,
            full: settings.full,
            empty: settings.empty,
        }
    }

    /// Returns the counters of the interval, for events without a method of their own.
    pub(crate) fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Records a request that is sent (or whose connection is begun) at `now`, intended for an
    /// earlier time. A connection was free for it since `free_since`: the time after both is this
    /// program's own delay, the time before is not.
    pub(crate) fn sent(&mut self, intended: u64, now: u64, free_since: u64) {
        let counts = &mut self.tally.counts;
        counts.sent += 1;
        let late = now.saturating_sub(intended);
        let lag = now.saturating_sub(intended.max(free_since));
        if late > Tally::LATE_NS {
            if lag > Tally::LATE_NS {
                counts.late_by_generator += 1;
            } else {
                counts.late_for_connection += 1;
            }
        }
        self.tally.lag.record(lag);
    }

    /// Returns true if the first response is still to be recorded by [`Recorder::first`].
    pub(crate) fn wants_first(&self) -> bool {
        self.length.get().is_none()
    }

    /// Records the first response, for its length and for the report.
    pub(crate) fn first(&mut self, first: FirstResponse) {
        if self.length.set(first.body_bytes).is_ok() {
            self.first = Some(Box::new(first));
        }
    }

    pub(crate) fn responded(&mut self, response: &ResponseRecord) {
        self.tally.responded(response);
        let latency = response.done.saturating_sub(response.intended);
        let is_good = response.status < Tally::BAD_FROM;
        let ended = if is_good {
            Ended::Good(latency)
        } else {
            Ended::Bad
        };
        self.by_rate.record(response.intended, ended);
        if !self.variable_length
            && self
                .length
                .get()
                .is_some_and(|length| *length != response.body_bytes)
        {
            self.tally.counts.other_length += 1;
        }
        if self.records_left > 0 {
            self.records_left -= 1;
            self.records.push(RequestRecord {
                intended: response.intended,
                connect: response.connect.unwrap_or(0),
                processing: response.done.saturating_sub(response.sent),
                total: latency,
                waiting: response.first_byte.saturating_sub(response.sent),
            });
        }
    }

    /// Records a request that was intended for one time and failed, or was given up, at another.
    pub(crate) fn failed(
        &mut self,
        kind: FailureKind,
        (intended, ended): (u64, u64),
        detail: impl FnOnce() -> String,
    ) {
        let lasted = ended.saturating_sub(intended);
        self.tally.failed(kind, lasted, detail);
        let timed_out = kind.has_latency();
        let ended = if timed_out {
            Ended::TimedOut(lasted)
        } else {
            Ended::Bad
        };
        self.by_rate.record(intended, ended);
    }

    /// Returns the time at which [`Recorder::flush`] is due.
    pub(crate) fn flush_due(&self) -> u64 {
        self.flush_due_ns
    }

    /// Sends the interval to the reporting thread. While that is too slow to take it (its output is
    /// not read), the interval continues instead: load must not wait for its report.
    pub(crate) fn flush(&mut self, now: u64) {
        let batch = self.batch(now);
        let begin_ns = batch.begin_ns;
        // On the grid of intervals, so that a thread that was held up once does not stay behind the
        // others.
        self.flush_due_ns = (now / self.interval_ns + 1) * self.interval_ns;
        if let Err(TrySendError::Full(batch)) = self.full.try_send(batch) {
            self.begin_ns = begin_ns;
            self.tally = batch.tally;
            self.records = batch.records;
            self.first = batch.first;
        }
    }

    /// Sends the last interval.
    pub(crate) fn finish(&mut self, now: u64) {
        let mut batch = self.batch(now);
        batch.is_last = true;
        batch.by_rate = mem::take(&mut self.by_rate);
        // The reporting thread takes every batch while there are senders.
        let _ = self.full.send(batch);
    }

    fn batch(&mut self, now: u64) -> Batch {
        let empty = self.empty.try_recv().unwrap_or_default();
        let batch = Batch {
            stream: self.stream,
            thread: self.thread,
            begin_ns: self.begin_ns,
            end_ns: now,
            is_last: false,
            tally: mem::replace(&mut self.tally, empty),
            records: mem::take(&mut self.records),
            first: self.first.take(),
            by_rate: ByRate::default(),
        };
        self.begin_ns = now;
        batch
    }
}
