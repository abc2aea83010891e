//! Of two placements around a handler the outer one learns here that there is an inner one, and how
//! much of its polls is the inner one's.

use std::cell::Cell;
use std::time::Duration;

use super::route::Route;

thread_local! {
    /// The innermost placed route that this thread polls.
    static CURRENT: Cell<Option<&'static Route>> = const { Cell::new(None) };
    /// How much of the current poll was spent in routes further in.
    static INNER: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Polls something of this route. Returns how much of it was spent in routes further in, whose busy
/// time that is.
pub(super) fn within<R>(route: &'static Route, poll: impl FnOnce() -> R) -> (R, Duration) {
    let _restored = Restored(CURRENT.replace(Some(route)), INNER.replace(Duration::ZERO));
    let polled = poll();
    (polled, INNER.get())
}

/// A poll of a placed route took so long: whoever is around it is not charged for that.
pub(super) fn took(time: Duration) {
    INNER.set(INNER.get() + time);
}

/// Makes the outer route the current one again, after a panic too.
struct Restored(Option<&'static Route>, Duration);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0);
        INNER.set(self.1);
    }
}

/// The route for which the calling thread works at the moment.
pub(crate) fn current() -> Option<&'static Route> {
    CURRENT.get()
}

/// Said by whoever places what it is about to run.
pub(crate) fn yield_to_inner() {
    if let Some(outer) = CURRENT.get() {
        outer.yield_to_inner();
    }
}
