//! The CPU time of one process of the server.

use std::collections::HashMap;
use std::time::Duration;

use super::reading::{Reading, ThreadReading, Ticks};

/// Ticks by which two differences of rounded counters may exceed the truth.
const TICKS_ROUNDED: u64 = 2;

/// A process, from its first sample (or its birth) to its last.
///
/// Its threads' accounts are exact, but an account is gone with its thread. The ticks of the whole
/// process keep the time of threads that ended. So the threads' sum holds until the ticks say that
/// it lacks more than their rounding can explain; then the ticks do.
#[derive(Clone, Debug)]
pub(super) struct Member {
    started: u64,
    threads: HashMap<i32, ThreadTime>,
    ran_ns: u64,
    waited_ns: u64,
    busiest_ns: u64,
    own: Span,
    reaped: Span,
    /// The threads' accounts since their begin, at the last sample.
    absolute_ns: u64,
}

/// A thread's account in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadTime {
    ran: u64,
    waited: u64,
    /// Of what it ran, the part that counts.
    counted: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    first: Ticks,
    last: Ticks,
}

impl Span {
    fn length(&self) -> Ticks {
        self.last.since(self.first)
    }
}

impl Member {
    /// Creates a process that was there before; its CPU time until now does not count.
    pub(super) fn found(reading: &Reading) -> Self {
        let mut member = Self::born(reading.started);
        member.own.first = reading.own;
        member.reaped.first = reading.reaped;
        member.threads = reading.threads.iter().map(uncounted).collect();
        member.own.last = reading.own;
        member.reaped.last = reading.reaped;
        member
    }

    /// Creates a process that began after the first sample; all its CPU time counts.
    pub(super) fn born(started: u64) -> Self {
        Self {
            started,
            threads: HashMap::new(),
            ran_ns: 0,
            waited_ns: 0,
            busiest_ns: 0,
            own: Span::default(),
            reaped: Span::default(),
            absolute_ns: 0,
        }
    }

    pub(super) fn started(&self) -> u64 {
        self.started
    }

    pub(super) fn update(&mut self, reading: &Reading) {
        let before = std::mem::take(&mut self.threads);
        self.absolute_ns = 0;
        for thread in &reading.threads {
            let mut time = before.get(&thread.tid).copied().unwrap_or_default();
            // An account that could not be read, or that of a new thread that has not run yet.
            if thread.ran_ns == 0 {
                self.threads.insert(thread.tid, time);
                continue;
            }
            // An account that went back is that of a new thread with a reused number.
            if thread.ran_ns < time.ran {
                time = ThreadTime::default();
            }
            let ran_ns = thread.ran_ns - time.ran;
            self.ran_ns += ran_ns;
            self.waited_ns += thread.waited_ns.saturating_sub(time.waited);
            self.absolute_ns += thread.ran_ns;
            time.counted += ran_ns;
            time.ran = thread.ran_ns;
            time.waited = thread.waited_ns;
            self.busiest_ns = self.busiest_ns.max(time.counted);
            self.threads.insert(thread.tid, time);
        }
        self.own.last = reading.own;
        self.reaped.last = reading.reaped;
    }

    /// Returns the CPU time that counts.
    fn ran(&self) -> Duration {
        let by_threads = Duration::from_nanos(self.ran_ns);
        let by_ticks = self.own.length().total();
        if by_ticks > by_threads + Ticks::duration(TICKS_ROUNDED) {
            by_ticks
        } else {
            by_threads
        }
    }

    /// Returns the whole CPU time of it and of the children that it waited for, at the last sample.
    fn absolute(&self) -> Duration {
        let own = self.own.last.total();
        own.max(Duration::from_nanos(self.absolute_ns)) + self.reaped.last.total()
    }
}

fn uncounted(thread: &ThreadReading) -> (i32, ThreadTime) {
    let time = ThreadTime {
        ran: thread.ran_ns,
        waited: thread.waited_ns,
        counted: 0,
    };
    (thread.tid, time)
}

/// Sums over processes: those that ended, or all.
///
/// When a process ends and its parent waits for it, the kernel adds its whole CPU time to the
/// parent's "children" counters. The growth of these counters (`reaped`), less the CPU time of the
/// ended processes when they were last seen (`absolute`), is the unseen time of ended processes:
/// after their last sample, or in a life between two samples. Parents that do not wait leave that
/// unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    ran: Duration,
    absolute: Duration,
    own: Ticks,
    reaped: Ticks,
    waited_ns: u64,
    busiest_ns: u64,
}

impl Sums {
    /// Adds a process that has ended.
    pub(super) fn add(&mut self, member: &Member) {
        self.ran += member.ran();
        self.absolute += member.absolute();
        self.add_counters(member);
    }

    /// Adds the counters of live processes; returns their own CPU time.
    pub(super) fn add_live<'a>(&mut self, members: impl Iterator<Item = &'a Member>) -> Duration {
        let mut ran = Duration::ZERO;
        for member in members {
            ran += member.ran();
            self.add_counters(member);
        }
        ran
    }

    fn add_counters(&mut self, member: &Member) {
        self.own.add(member.own.length());
        self.reaped.add(member.reaped.length());
        self.waited_ns += member.waited_ns;
        self.busiest_ns = self.busiest_ns.max(member.busiest_ns);
    }

    /// Returns the CPU time of the processes that ended, seen and unseen.
    pub(super) fn of_ended(&self) -> Duration {
        self.ran + self.reaped.total().saturating_sub(self.absolute)
    }

    /// Returns the share of the ticks that was in user mode; half without any.
    #[expect(
        clippy::cast_precision_loss,
        reason = "ticks, of which a year has 2^32"
    )]
    pub(super) fn user_share(&self) -> f64 {
        let mut ticks = self.own;
        ticks.add(self.reaped);
        match ticks.user + ticks.system {
            0 => 0.5,
            all => ticks.user as f64 / all as f64,
        }
    }

    pub(super) fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited_ns)
    }

    pub(super) fn busiest_thread(&self) -> Duration {
        Duration::from_nanos(self.busiest_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn reading(user: u64, reaped: u64, threads: &[(i32, u64)]) -> Reading {
        let thread = |&(tid, ran_ns): &(i32, u64)| ThreadReading {
            tid,
            ran_ns,
            waited_ns: 0,
        };
        Reading {
            started: 1,
            is_zombie: false,
            own: Ticks { user, system: 0 },
            reaped: Ticks {
                user: reaped,
                system: 0,
            },
            rss_bytes: 0,
            threads: threads.iter().map(thread).collect(),
        }
    }

    #[test]
    fn threads_count_to_the_nanosecond() {
        let mut member = Member::found(&reading(100, 0, &[(1, 1000 * MS), (2, 7)]));
        member.update(&reading(101, 0, &[(1, 1010 * MS + 3), (2, 9)]));
        assert_eq!(member.ran(), Duration::from_nanos(10 * MS + 5));
        assert_eq!(member.busiest_ns, 10 * MS + 3);
    }

    #[test]
    fn a_thread_that_ended_is_counted_by_the_ticks() {
        let mut member = Member::found(&reading(100, 0, &[(1, 500 * MS), (2, 500 * MS)]));
        // Thread 2 ran 300 ms more and ended; 1 ran 20 ms.
        member.update(&reading(132, 0, &[(1, 520 * MS)]));
        assert_eq!(member.ran(), Ticks::duration(32));
    }

    #[test]
    fn a_thread_with_an_old_number_is_a_new_one() {
        let mut member = Member::found(&reading(0, 0, &[(1, 500 * MS)]));
        member.update(&reading(0, 0, &[(1, 2 * MS)]));
        assert_eq!(member.ran(), Duration::from_millis(2));
    }

    #[test]
    fn children_that_ended_between_samples_are_counted_once() {
        let mut parent = Member::found(&reading(0, 0, &[(1, 0)]));
        let mut child = Member::born(5);
        child.update(&reading(10, 0, &[(9, 100 * MS)]));
        // It used 50 ms more after it was last seen, and a second child of 200 ms was never seen.
        parent.update(&reading(0, 35, &[(1, 0)]));
        let mut sums = Sums::default();
        sums.add(&child);
        let live = sums.add_live([&parent].into_iter());
        assert_eq!(live + sums.of_ended(), Ticks::duration(35));
    }

    #[test]
    fn a_child_that_nobody_waited_for_keeps_what_was_seen() {
        let parent = Member::found(&reading(0, 0, &[(1, 0)]));
        let mut child = Member::born(5);
        child.update(&reading(10, 0, &[(9, 100 * MS)]));
        let mut sums = Sums::default();
        sums.add(&child);
        let live = sums.add_live([&parent].into_iter());
        assert_eq!(live + sums.of_ended(), Duration::from_millis(100));
    }
}
