//! Paths below `/proc`, by which the system reports the state of this process's threads, if it can
//! be read.

use std::fmt::Display;
use std::sync::Once;

/// Returns a path below `/proc`. Everything that is read there has its path from here.
pub(crate) fn path(below: impl Display) -> String {
    format!("{}/{below}", root())
}

#[cfg(not(test))]
fn root() -> &'static str {
    "/proc"
}

#[cfg(test)]
use of_tests::root;

/// Warns once that `/proc` is missing, when a file was to be read there.
pub(crate) fn warn_unreadable() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "/proc cannot be read: whether a thread computes, blocks or was preempted is judged by \
             its CPU clock, and now and then wrongly"
        );
    });
}

#[cfg(test)]
pub(crate) mod of_tests {
    use std::cell::Cell;

    thread_local! {
        static IS_MISSING: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn root() -> &'static str {
        if is_missing() {
            "/var/empty/no-proc"
        } else {
            "/proc"
        }
    }

    pub(crate) fn is_missing() -> bool {
        IS_MISSING.get()
    }

    /// Runs a test on this thread as if `/proc` were not mounted.
    pub(crate) fn without_proc<R>(test: impl FnOnce() -> R) -> R {
        IS_MISSING.set(true);
        let result = test();
        IS_MISSING.set(false);
        result
    }
}
