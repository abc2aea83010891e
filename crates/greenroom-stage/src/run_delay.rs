//! Run delays: the time that a thread stood ready and had no processor, the second number of
//! `/proc/…/schedstat`.
//!
//! While stages compute on every core, a loop is now and then taken off its core in the midst of a
//! short handler. That is not the handler's time, and must not count as such. And where others
//! take their share of the processors, a stage's runs need more time than they compute.
//!
//! Where the system does not report them, threads are judged by their CPU clocks, which do not show
//! either if a thread that had no processor wanted one.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use procfs::FromRead;
use procfs::process::Schedstat;

use crate::proc;
use crate::thread_state::{cpu_time, cpu_time_of, sleeps};

/// The time without a processor beyond which a thread is taken to have slept rather than waited for
/// one, where the system does not report run delays.
const PREEMPTED_MAX: Duration = Duration::from_millis(100);

/// True if the system reports run delays. Tested once.
pub(crate) fn is_reported() -> bool {
    static IS_REPORTED: LazyLock<bool> = LazyLock::new(|| {
        let is_reported = of_this_thread().is_some();
        if !is_reported {
            proc::warn_unreadable();
        }
        is_reported
    });
    #[cfg(test)]
    if proc::of_tests::is_missing() {
        return false;
    }
    *IS_REPORTED
}

/// Returns the calling thread's run delay; `None` where the system does not report it. Opens a file
/// and closes it again: some 4 us, and no descriptor held for each of hundreds of threads.
pub(crate) fn of_this_thread() -> Option<u64> {
    read(&proc::path("thread-self/schedstat"))
}

/// Returns another thread's run delay.
fn of_thread(thread: i32) -> Option<u64> {
    read(&proc::path(format_args!("self/task/{thread}/schedstat")))
}

/// Takes a reading of the calling thread for a later [`busy_of_thread`].
pub(crate) fn note_of_this_thread() -> u64 {
    if is_reported() {
        of_this_thread().unwrap_or(0)
    } else {
        nanos(cpu_time())
    }
}

/// Takes such a reading of another thread.
pub(crate) fn note_of_thread(thread: i32) -> u64 {
    if is_reported() {
        of_thread(thread).unwrap_or(0)
    } else {
        cpu_time_of(thread).map_or(0, nanos)
    }
}

/// Returns how much of the time since a reading was the thread's own. Where the system does not
/// report run delays: its CPU time, or, of more than 100 ms, all.
pub(crate) fn busy_of_thread(thread: i32, note: u64, taken: Duration) -> Duration {
    let since_note = Duration::from_nanos(note_of_thread(thread).saturating_sub(note));
    if is_reported() {
        taken.saturating_sub(since_note)
    } else if taken > PREEMPTED_MAX {
        taken
    } else {
        since_note.min(taken)
    }
}

/// The calling thread's own clocks, where the system does not tell run delays.
pub(crate) struct OwnClocks {
    sleeps: Option<i64>,
    cpu: Duration,
}

impl OwnClocks {
    /// Starts the clocks; `None` where the system reports run delays: they say more, and cost less.
    #[inline]
    pub(crate) fn start_if_needed() -> Option<Self> {
        (!is_reported()).then(|| Self {
            sleeps: sleeps(),
            cpu: cpu_time(),
        })
    }

    /// Returns how much of the time taken since then was the thread's own: its CPU time, or all if
    /// it slept.
    pub(crate) fn busy(&self, taken: Duration) -> Duration {
        if self.sleeps.is_some() && self.sleeps == sleeps() {
            cpu_time().saturating_sub(self.cpu).min(taken)
        } else {
            taken
        }
    }
}

/// The age of the last reading, beyond the time that is asked for, up to which it is used.
const READING_AGE_MAX: Duration = Duration::from_millis(10);

/// Returns this thread's run delay in the last `time`; zero if it was last read long before that,
/// because most of the difference is not of that time, and where the system does not report it.
pub(crate) fn in_the_last(time: Duration) -> Duration {
    thread_local! {
        static LAST: Cell<Option<(u64, Instant)>> = const { Cell::new(None) };
    }
    let now = of_this_thread().map(|delay| (delay, Instant::now()));
    let last = LAST.replace(now);
    let Some(((delay, at), (delay_then, then))) = now.zip(last) else {
        return Duration::ZERO;
    };
    if at.saturating_duration_since(then) > time + READING_AGE_MAX {
        return Duration::ZERO;
    }
    Duration::from_nanos(delay.saturating_sub(delay_then)).min(time)
}

fn read(path: &str) -> Option<u64> {
    Some(Schedstat::from_file(path).ok()?.run_delay)
}

/// Returns the nanoseconds of a time, and the largest number for one of some 584 years. In 64 bits:
/// to divide 128 takes longer than all else that is recorded of a run.
pub(crate) fn nanos(time: Duration) -> u64 {
    let seconds = time.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(time.subsec_nanos().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::of_tests::without_proc;
    use rustix::thread::{Pid, gettid};
    use std::hint::black_box;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn this_thread() -> i32 {
        Pid::as_raw(Some(gettid()))
    }

    #[test]
    fn both_readings_are_of_the_same_thread() {
        let before = of_this_thread().expect("Linux has it");
        let between = of_thread(this_thread()).expect("it can be read");
        let after = of_this_thread().expect("it can be read");
        assert!(before <= between && between <= after);
    }

    #[test]
    fn without_proc_only_what_a_thread_computed_is_its_own_up_to_100_ms() {
        without_proc(|| {
            assert_eq!(of_this_thread(), None);
            let note = note_of_thread(this_thread());
            let until = cpu_time() + 3 * MILLISECOND;
            while cpu_time() < until {
                black_box(0);
            }
            let busy = |taken| busy_of_thread(this_thread(), note, taken);
            assert!(busy(100 * MILLISECOND) >= 3 * MILLISECOND);
            assert_eq!(busy(2 * MILLISECOND), 2 * MILLISECOND);
            assert_eq!(busy(101 * MILLISECOND), 101 * MILLISECOND);
        });
    }

    #[test]
    fn without_proc_a_poll_that_sleeps_is_busy_meanwhile() {
        assert!(OwnClocks::start_if_needed().is_none());
        without_proc(|| {
            let clocks = OwnClocks::start_if_needed().expect("needed");
            std::thread::sleep(MILLISECOND);
            assert_eq!(clocks.busy(900 * MILLISECOND), 900 * MILLISECOND);
        });
    }
}
