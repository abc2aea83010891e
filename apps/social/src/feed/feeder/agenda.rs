use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::Instant;

use super::super::waker::Waker;

/// The times at which clients are to be woken: at once if the last time is longer ago than the
/// pace, else when the pace is over.
///
/// One timer serves all.
#[derive(Debug)]
pub(super) struct Agenda {
    began: Instant,
    pace_millis: u64,
    /// The clients by the millisecond in which they are due.
    due: BTreeMap<u64, Vec<Arc<Waker>>>,
    /// The millisecond that a timer is set for.
    awaited: Option<u64>,
}

impl Agenda {
    pub(super) fn new(pace: Duration) -> Self {
        Self {
            began: Instant::now(),
            pace_millis: millis(pace),
            due: BTreeMap::new(),
            awaited: None,
        }
    }

    /// Schedules clients that have new events to read.
    pub(super) fn announce(&mut self, wakers: &[Arc<Waker>]) {
        let now = self.now();
        for waker in wakers {
            if waker.is_due.load(Relaxed) {
                continue;
            }
            let rests_until = waker.rests_until.load(Relaxed);
            if rests_until <= now {
                self.wake_at(waker, now);
            } else {
                self.put(waker, rests_until);
            }
        }
    }

    /// Wakes a client that waits for its request, without regard to the pace.
    pub(super) fn wake(&mut self, waker: &Arc<Waker>) {
        if !waker.wake() {
            self.put(waker, self.now() + 1);
        }
    }

    /// Wakes all clients that are due.
    pub(super) fn wake_due(&mut self) {
        self.awaited = None;
        let now = self.now();
        let later = self.due.split_off(&(now + 1));
        let due = std::mem::replace(&mut self.due, later);
        for waker in due.into_values().flatten() {
            waker.is_due.store(false, Relaxed);
            self.wake_at(&waker, now);
        }
    }

    /// Returns the time after which to call [`wake_due`](Self::wake_due), unless a timer is already
    /// set for it.
    pub(super) fn next(&mut self) -> Option<Duration> {
        let (&first, _) = self.due.first_key_value()?;
        if self.awaited.is_some_and(|awaited| awaited <= first) {
            return None;
        }
        self.awaited = Some(first);
        Some((self.began + Duration::from_millis(first)).duration_since(Instant::now()))
    }

    fn wake_at(&mut self, waker: &Arc<Waker>, now: u64) {
        let rests_until = now + self.pace_millis;
        waker.rests_until.store(rests_until, Relaxed);
        if !waker.wake() {
            // At least a millisecond later, even without a pace.
            self.put(waker, rests_until.max(now + 1));
        }
    }

    fn put(&mut self, waker: &Arc<Waker>, due: u64) {
        if !waker.is_due.swap(true, Relaxed) {
            self.due.entry(due).or_default().push(Arc::clone(waker));
        }
    }

    fn now(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 2)
}
