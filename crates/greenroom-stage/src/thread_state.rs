//! What the threads of this process do.

use std::fs;
use std::time::Duration;

use procfs::FromRead;
use procfs::process::Stat;
use rustix::time::{ClockId, clock_gettime};

/// For how long the calling thread has had a processor.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Whether the thread sleeps in the system (S) or waits for a device (D). One that could compute
/// and has no processor at the moment is in state R like one that has. A thread that has just
/// ended counts as not blocked.
pub(crate) fn is_blocked(thread: i32) -> bool {
    let path = format!("/proc/self/task/{thread}/stat");
    Stat::from_file(path).is_ok_and(|stat| matches!(stat.state, 'S' | 'D'))
}

/// Whether the thread computes, or where in the system it sleeps if the system tells.
pub(crate) fn describe(thread: i32) -> String {
    if !is_blocked(thread) {
        return "computes".to_owned();
    }
    match fs::read_to_string(format!("/proc/self/task/{thread}/wchan")) {
        Ok(place) if !matches!(place.as_str(), "" | "0") => format!("sleeps in {place}"),
        _ => "sleeps".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{Pid, gettid};

    #[test]
    fn a_thread_that_looks_at_itself_computes() {
        assert_eq!(describe(Pid::as_raw(Some(gettid()))), "computes");
    }
}
