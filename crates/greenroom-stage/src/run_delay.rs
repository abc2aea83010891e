//! How long a thread stood ready and had no processor: the second number of `/proc/…/schedstat`.
//!
//! While stages compute on every core, a loop is now and then taken off its core in the midst of a
//! short handler. That is not the handler's time, and must not count as such. And where others
//! take their share of the processors, a stage's runs need more time than they compute.

use std::cell::Cell;
use std::time::{Duration, Instant};

use procfs::FromRead;
use procfs::process::Schedstat;

/// The calling thread's; `None` where the system does not tell. Opens a file and closes it again:
/// some 4 us, and no descriptor held for each of hundreds of threads.
pub(crate) fn of_this_thread() -> Option<u64> {
    read("/proc/thread-self/schedstat")
}

/// Another thread's.
pub(crate) fn of_thread(thread: i32) -> Option<u64> {
    read(&format!("/proc/self/task/{thread}/schedstat"))
}

/// How old the last reading may be, beyond the time that is asked for.
const READING_AGE_MAX: Duration = Duration::from_millis(10);

/// This thread's, in the last `time`; zero if it was last read long before that, because most of what
/// came since is not of that time, and where the system does not tell.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{Pid, gettid};

    #[test]
    fn both_readings_are_of_the_same_thread() {
        let before = of_this_thread().expect("Linux has it");
        let between = of_thread(Pid::as_raw(Some(gettid()))).expect("it can be read");
        let after = of_this_thread().expect("it can be read");
        assert!(before <= between && between <= after);
    }
}
