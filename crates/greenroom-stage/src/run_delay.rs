//! How long a thread stood ready and had no processor: the second number of `/proc/…/schedstat`.
//!
//! While stages compute on every core, a loop is now and then taken off its core in the midst of a
//! short handler. That is not the handler's time, and must not count as such. And where others
//! take their share of the processors, a stage's runs need more time than they compute.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use procfs::FromRead;
use procfs::process::Schedstat;

const SCHEDSTAT_BYTES: usize = 128;

/// The calling thread's own, kept open: a reading is one system call.
pub(crate) struct OfThisThread(File);

impl OfThisThread {
    /// `None` where the system does not tell.
    pub(crate) fn open() -> Option<Self> {
        File::open("/proc/thread-self/schedstat").ok().map(Self)
    }

    pub(crate) fn read(&self) -> Option<u64> {
        let mut text = [0; SCHEDSTAT_BYTES];
        let length = self.0.read_at(&mut text, 0).ok()?;
        Some(Schedstat::from_read(&text[..length]).ok()?.run_delay)
    }
}

/// This thread's, since it was asked last; zero the first time, and where the system does not tell.
pub(crate) fn since_last() -> Duration {
    thread_local! {
        static THIS: OnceCell<Option<OfThisThread>> = const { OnceCell::new() };
        static LAST: Cell<Option<u64>> = const { Cell::new(None) };
    }
    let now = THIS.with(|this| this.get_or_init(OfThisThread::open).as_ref()?.read());
    let last = LAST.replace(now);
    let nanos = now.zip(last).map(|(now, last)| now.saturating_sub(last));
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Another thread's.
pub(crate) fn of_thread(thread: i32) -> Option<u64> {
    let path = format!("/proc/self/task/{thread}/schedstat");
    Some(Schedstat::from_file(path).ok()?.run_delay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{Pid, gettid};

    #[test]
    fn both_readings_are_of_the_same_thread() {
        let own = OfThisThread::open().expect("Linux has it");
        let before = own.read().expect("it can be read");
        let between = of_thread(Pid::as_raw(Some(gettid()))).expect("it can be read");
        let after = own.read().expect("it can be read");
        assert!(before <= between && between <= after);
    }
}
