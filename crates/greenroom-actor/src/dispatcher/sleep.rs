//! Sleep of a worker without work, from which it is woken without ever missing some.

use super::sync::{AtomicBool, Ordering, fence};

/// The flag of a sleeping worker. Work is published first, then [`wake`](Self::wake) is called; the
/// worker says first that it [goes to sleep](Self::go_to_sleep), then looks for work once more. So
/// one of the two sees the other.
pub(crate) struct Sleeper(AtomicBool);

impl Sleeper {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Marks the worker as asleep. It must look for work once more.
    pub(crate) fn go_to_sleep(&self) {
        self.0.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Returns `true` if the worker slept, and the caller is the one to wake it.
    pub(crate) fn wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.wake_fenced()
    }

    /// Does the same for a caller that has a fence behind what it published, or has published
    /// nothing, as the worker itself.
    pub(crate) fn wake_fenced(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}
