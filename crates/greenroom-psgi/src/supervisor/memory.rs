//! The memory of a process.

use std::fs;

use rustix::process::Pid;

/// Returns the resident bytes of a process, shared pages included; `None` if it is gone.
pub(super) fn resident_bytes(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).ok()?;
    let page = u64::try_from(rustix::param::page_size()).ok()?;
    resident_pages(&text).map(|pages| pages * page)
}

/// Parses the second number of `/proc/PID/statm` (`proc_pid_statm(5)`).
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_found_and_that_of_nobody_is_not() {
        let ours = resident_bytes(rustix::process::getpid()).expect("we exist");
        assert!(ours > 100_000, "{ours}");
        assert_eq!(resident_pages("12 7 3 1 0 2 0\n"), Some(7));
        assert_eq!(resident_pages(""), None);
    }
}
