use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::Span;

/// `true` once a request was timed.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// The record of where a request's time goes. The server puts it into the request's extensions if
/// somebody wants to know; whoever has a part in the request adds to it. Clones are the same
/// record.
#[derive(Clone, Debug)]
pub struct Timing(Arc<Record>);

/// Times in nanoseconds.
#[derive(Debug)]
struct Record {
    began: Instant,
    head: Duration,
    /// The span of the request, if its trace is sampled.
    span: Option<Span>,
    body: AtomicU64,
    queue: AtomicU64,
    poll: AtomicU64,
    polls: AtomicU32,
    worker_queue: AtomicU64,
    worker: AtomicU64,
    responded: AtomicU64,
    first_thread: AtomicU64,
    worker_began: AtomicU64,
    worker_ended: AtomicU64,
    stage: OnceLock<Box<str>>,
    worker_pid: AtomicU32,
}

/// The parts of a request's time so far. What overlaps counts for each part: a handler may be
/// polled while the body still comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From the first byte of the head to its end, if it came in several pieces.
    pub head: Duration,
    /// From the end of the head to the last piece of the body, if that did not come with it.
    pub body: Duration,
    /// Waits for the first thread of a stage.
    pub queue: Duration,
    /// In the handler's code: polls on the loop and on a stage.
    pub poll: Duration,
    /// The number of these polls.
    pub polls: u32,
    /// Waits for a worker process.
    pub worker_queue: Duration,
    /// From the worker's having the request to its response.
    pub worker: Duration,
    /// From the end of the head to the response, if there is one.
    pub response: Option<Duration>,
    /// From the end of the head to the first thread of a stage, if it had one.
    pub first_thread: Option<Duration>,
    /// From the end of the head to the first worker's having the request, if one had it.
    pub worker_began: Option<Duration>,
    /// From the end of the head to the last worker's response, or loss.
    pub worker_ended: Option<Duration>,
    /// From the first byte of the head until now.
    pub total: Duration,
    /// The stage that it ran on last.
    pub stage: Option<Box<str>>,
    /// The process id of its worker.
    pub worker_pid: Option<u32>,
}

impl Timing {
    /// Begins the record of a request whose head is whole, and took `head` to come; its handler
    /// works for the span, if it has one.
    #[must_use]
    pub fn begin(head: Duration, span: Option<Span>) -> Self {
        IS_USED.store(true, Ordering::Relaxed);
        Self(Arc::new(Record {
            began: Instant::now(),
            head,
            span,
            body: AtomicU64::new(0),
            queue: AtomicU64::new(0),
            poll: AtomicU64::new(0),
            polls: AtomicU32::new(0),
            worker_queue: AtomicU64::new(0),
            worker: AtomicU64::new(0),
            responded: AtomicU64::new(0),
            first_thread: AtomicU64::new(0),
            worker_began: AtomicU64::new(0),
            worker_ended: AtomicU64::new(0),
            stage: OnceLock::new(),
            worker_pid: AtomicU32::new(0),
        }))
    }

    /// Returns `false` while no request of the process has a record, so that nobody need look for
    /// one: one read.
    #[must_use]
    pub fn is_used() -> bool {
        IS_USED.load(Ordering::Relaxed)
    }

    /// Returns the request's span, if its trace is sampled.
    #[must_use]
    pub fn span(&self) -> Option<&Span> {
        self.0.span.as_ref()
    }

    /// Runs a poll of the handler, on whatever thread.
    pub fn polled<T>(&self, poll: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = match &self.0.span {
            Some(span) => span.within(poll),
            None => poll(),
        };
        add(&self.0.poll, began.elapsed());
        self.0.polls.fetch_add(1, Ordering::Relaxed);
        result
    }

    /// Adds a wait for a thread of this stage.
    pub fn queued(&self, stage: &str, wait: Duration) {
        add(&self.0.queue, wait);
        first(&self.0.first_thread, self.0.began.elapsed());
        self.0.stage.get_or_init(|| stage.into());
    }

    /// Adds a wait for a worker process.
    pub fn queued_for_worker(&self, wait: Duration) {
        add(&self.0.worker_queue, wait);
    }

    /// Adds a worker's time until its response, or until it was lost.
    pub fn worked(&self, pid: u32, time: Duration) {
        add(&self.0.worker, time);
        let now = self.0.began.elapsed();
        first(&self.0.worker_began, now.saturating_sub(time));
        self.0
            .worker_ended
            .store(nanos(now).max(1), Ordering::Relaxed);
        self.0.worker_pid.store(pid, Ordering::Relaxed);
    }

    /// A piece of the body has come; the last one counts.
    pub fn body_came(&self) {
        let time = nanos(self.0.began.elapsed());
        self.0.body.store(time, Ordering::Relaxed);
    }

    /// The response begins; the first time counts.
    pub fn responded(&self) {
        first(&self.0.responded, self.0.began.elapsed());
    }

    /// Returns the record until now.
    #[must_use]
    pub fn times(&self) -> Times {
        let record = &*self.0;
        let of = |time: &AtomicU64| Duration::from_nanos(time.load(Ordering::Relaxed));
        let moment = |time| Some(of(time)).filter(|time| !time.is_zero());
        let worker_pid = record.worker_pid.load(Ordering::Relaxed);
        Times {
            head: record.head,
            body: of(&record.body),
            queue: of(&record.queue),
            poll: of(&record.poll),
            polls: record.polls.load(Ordering::Relaxed),
            worker_queue: of(&record.worker_queue),
            worker: of(&record.worker),
            response: moment(&record.responded),
            first_thread: moment(&record.first_thread),
            worker_began: moment(&record.worker_began),
            worker_ended: moment(&record.worker_ended),
            total: record.head + record.began.elapsed(),
            stage: record.stage.get().cloned(),
            worker_pid: Some(worker_pid).filter(|pid| *pid > 0),
        }
    }
}

impl Times {
    /// Returns the time in which the handler waited for something else than a stage or a worker: a
    /// timer, a client's body, another server. Until the response, or until now.
    #[must_use]
    pub fn waiting(&self) -> Duration {
        let until = self
            .response
            .unwrap_or(self.total.saturating_sub(self.head));
        let known = self.queue + self.poll + self.worker_queue + self.worker;
        until.saturating_sub(known)
    }

    /// Returns the time since the response began: for making its body, and for the client's taking
    /// it.
    #[must_use]
    pub fn write(&self) -> Duration {
        let since = |response| self.total.saturating_sub(self.head + response);
        self.response.map_or(Duration::ZERO, since)
    }
}

fn add(sum: &AtomicU64, time: Duration) {
    sum.fetch_add(nanos(time), Ordering::Relaxed);
}

/// Stores a moment unless there is one. Zero stands for none.
fn first(moment: &AtomicU64, time: Duration) {
    if moment.load(Ordering::Relaxed) == 0 {
        moment.store(nanos(time).max(1), Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_not_known_was_waited() {
        let times = Times {
            head: MILLI,
            queue: 2 * MILLI,
            poll: 3 * MILLI,
            worker_queue: 4 * MILLI,
            worker: 5 * MILLI,
            response: Some(20 * MILLI),
            total: 31 * MILLI,
            ..Times::default()
        };
        assert_eq!(times.waiting(), 6 * MILLI);
        assert_eq!(times.write(), 10 * MILLI);
        let without_response = Times {
            response: None,
            ..times
        };
        assert_eq!(without_response.waiting(), 16 * MILLI);
        assert_eq!(without_response.write(), Duration::ZERO);
    }

    #[test]
    fn all_who_have_a_part_add_to_one_record() {
        let timing = Timing::begin(MILLI, None);
        assert!(Timing::is_used());
        let other = timing.clone();
        assert_eq!(other.polled(|| 7), 7);
        other.queued("reports", 2 * MILLI);
        other.queued_for_worker(3 * MILLI);
        other.worked(4_711, 4 * MILLI);
        other.body_came();
        timing.responded();
        let first = timing.times().response;
        timing.responded();
        let times = timing.times();
        assert_eq!((times.head, times.queue), (MILLI, 2 * MILLI));
        assert_eq!((times.worker_queue, times.worker), (3 * MILLI, 4 * MILLI));
        assert_eq!((times.polls, times.worker_pid), (1, Some(4_711)));
        assert_eq!(times.stage.as_deref(), Some("reports"));
        assert!(first.is_some() && times.response == first);
        assert!(times.body <= times.total);
        assert!(times.first_thread.is_some() && times.first_thread <= times.response);
        assert!(times.worker_began.is_some() && times.worker_began <= times.worker_ended);
    }
}
