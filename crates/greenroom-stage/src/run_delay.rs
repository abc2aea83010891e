//! How long a thread stood ready and had no processor: the second number of `/proc/…/schedstat`.
//!
//! While stages compute on every core, a loop is now and then taken off its core in the midst of a
//! short handler. That is not the handler's time, and must not count as such. And where others
//! take their share of the processors, a stage's runs need more time than they compute.

use std::cell::Cell;
use std::time::Duration;

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

/// This thread's, since it was asked last; zero the first time, and where the system does not tell.
pub(crate) fn since_last() -> Duration {
    thread_local! {
        static LAST: Cell<Option<u64>> = const { Cell::new(None) };
    }
    let now = of_this_thread();
    let last = LAST.replace(now);
    let nanos = now.zip(last).map(|(now, last)| now.saturating_sub(last));
    Duration::from_nanos(nanos.unwrap_or(0))
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
