use std::io;
use std::time::Duration;

use libc::{SYS_sched_getattr, SYS_sched_setattr, c_long, sched_attr, syscall};

const THIS_THREAD: c_long = 0;
const NO_FLAGS: c_long = 0;

/// Asks the system for time slices of this length for the calling thread, from 0.1 to 100 ms; zero
/// is the system's own (some 3 ms). The thread's share of the processors stays the same, and so do
/// its policy and niceness. Linux applies it from 6.12 on (`sched_setattr(2)`, EEVDF); an older one
/// accepts the call and does nothing.
///
/// # Errors
///
/// The error of the system call, and [`io::ErrorKind::Unsupported`] if the thread is not scheduled
/// by a policy that has such slices.
pub(crate) fn set_time_slice(slice: Duration) -> io::Result<()> {
    let mut attributes = attributes_of_this_thread()?;
    let policy = i32::try_from(attributes.sched_policy).unwrap_or(-1);
    if !matches!(policy, libc::SCHED_OTHER | libc::SCHED_BATCH) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the pointer is that of a local structure as the system defines it, whose `size` is
    // its own; the call reads that many bytes and keeps none of it.
    let result = unsafe {
        syscall(
            SYS_sched_setattr,
            THIS_THREAD,
            &raw const attributes,
            NO_FLAGS,
        )
    };
    succeeded(result)
}

fn attributes_of_this_thread() -> io::Result<sched_attr> {
    let size = u32::try_from(size_of::<sched_attr>()).unwrap_or(u32::MAX);
    let mut attributes = sched_attr {
        size,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the pointer is that of a local structure of numbers, any of which is valid; the call
    // writes `size` bytes at most, which is the structure's own.
    let result = unsafe {
        let pointer = &raw mut attributes;
        syscall(
            SYS_sched_getattr,
            THIS_THREAD,
            pointer,
            c_long::from(size),
            NO_FLAGS,
        )
    };
    succeeded(result)?;
    Ok(attributes)
}

fn succeeded(result: c_long) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policy and niceness stay the same.
    #[test]
    fn a_thread_has_the_slice_that_it_asked_for_where_the_system_has_such() {
        let before = attributes_of_this_thread().expect("the system tells");
        set_time_slice(Duration::from_millis(100)).expect("any thread may");
        let after = attributes_of_this_thread().expect("the system tells");
        let of = |attributes: &sched_attr| (attributes.sched_policy, attributes.sched_nice);
        assert_eq!(of(&before), of(&after));
        assert!([before.sched_runtime, 100_000_000].contains(&after.sched_runtime));
    }
}
