//! The states and CPU clocks of this process's threads.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use procfs::FromRead;
use procfs::process::Stat;
use rustix::time::{ClockId, clock_gettime};

use crate::proc;

/// `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED` of the kernel's `posix-timers_types.h`.
const CLOCK_OF_A_THREAD: i32 = 0b110;

/// Returns the CPU time of the calling thread.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns the CPU time of another thread of this process; `None` if it has ended. Its clock is the
/// one that `pthread_getcpuclockid` computes, which takes no `/proc`.
pub(crate) fn cpu_time_of(thread: i32) -> Option<Duration> {
    let clock = nix::time::ClockId::from_raw((!thread << 3) | CLOCK_OF_A_THREAD);
    nix::time::clock_gettime(clock).ok().map(Duration::from)
}

/// Returns how often this thread has given its processor up of its own accord.
pub(crate) fn sleeps() -> Option<i64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    Some(usage.voluntary_context_switches())
}

/// True if the thread sleeps in the system (S) or waits for a device (D). One that could compute
/// and has no processor at the moment is in state R like one that has. `None` for a thread that has
/// just ended, and where `/proc` cannot be read.
pub(crate) fn is_blocked(thread: i32) -> Option<bool> {
    let path = proc::path(format_args!("self/task/{thread}/stat"));
    let stat = Stat::from_file(path).ok()?;
    Some(matches!(stat.state, 'S' | 'D'))
}

/// Describes the thread: computing, or the place in the system where it sleeps, as far as the
/// system reports it.
pub(crate) fn describe(thread: i32) -> String {
    match is_blocked(thread) {
        None => return "computes or sleeps".to_owned(),
        Some(false) => return "computes".to_owned(),
        Some(true) => {}
    }
    let path = proc::path(format_args!("self/task/{thread}/wchan"));
    match fs::read_to_string(path) {
        Ok(place) if !matches!(place.as_str(), "" | "0") => format!("sleeps in {place}"),
        _ => "sleeps".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::of_tests::without_proc;
    use rustix::thread::{Pid, gettid};

    #[test]
    fn a_thread_that_looks_at_itself_computes() {
        let this = Pid::as_raw(Some(gettid()));
        assert_eq!(describe(this), "computes");
        without_proc(|| assert_eq!(describe(this), "computes or sleeps"));
    }

    #[test]
    fn both_clocks_are_of_the_same_thread() {
        let before = cpu_time();
        let between = cpu_time_of(Pid::as_raw(Some(gettid()))).expect("it lives");
        assert!(before <= between && between <= cpu_time());
    }

    #[test]
    fn a_thread_that_has_ended_has_no_clock() {
        let ended = std::thread::spawn(|| Pid::as_raw(Some(gettid())));
        let ended = ended.join().expect("it ends");
        // The system takes its record away a moment after it was joined.
        while cpu_time_of(ended).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(is_blocked(ended), None);
    }
}
