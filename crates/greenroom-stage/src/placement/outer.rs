//! Nested placements: here the outer one of two learns that there is an inner one, and how much of
//! its polls is the inner one's.

use std::cell::Cell;
use std::time::Duration;

use super::route::Route;

thread_local! {
    /// The innermost placed route that this thread polls.
    static CURRENT: Cell<Option<&'static Route>> = const { Cell::new(None) };
    /// The part of the current poll that was spent in inner routes.
    static INNER: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Polls a future of this route. Returns the time spent in inner routes, whose busy time that is.
pub(super) fn within<R>(route: &'static Route, poll: impl FnOnce() -> R) -> (R, Duration) {
    let _restored = Restored(CURRENT.replace(Some(route)), INNER.replace(Duration::ZERO));
    let polled = poll();
    (polled, INNER.get())
}

/// Records the time of a poll of a placed route, so that the routes around it are not charged for
/// it.
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

/// Returns the route for which the calling thread works at the moment.
pub(crate) fn current() -> Option<&'static Route> {
    CURRENT.get()
}

/// Makes the outer route yield; called by a placement that is about to run its service.
pub(crate) fn yield_to_inner() {
    if let Some(outer) = CURRENT.get() {
        outer.yield_to_inner();
    }
}
