//! How a worker without work rests, and how it is woken without ever missing some.

use super::sync::{AtomicBool, Ordering, fence};

/// Whether a worker rests. Work is published first, then [`wake`](Self::wake) is called; the worker
/// says first that it [goes to sleep](Self::go_to_sleep), then looks for work once more. So one of
/// the two sees the other.
pub(crate) struct Sleeper(AtomicBool);

impl Sleeper {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Says that the worker rests from now on. It must look for work once more.
    pub(crate) fn go_to_sleep(&self) {
        self.0.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// True if the worker rested, and the caller is the one to wake it.
    pub(crate) fn wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}
