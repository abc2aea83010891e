//! Nested placements: here the outer one of two learns that there is an inner one, and how much of
//! its polls, and of its request's body, is the inner one's.

use std::cell::Cell;
use std::time::Duration;

use greenroom_timing::body_bytes_during;
use scoped_tls::scoped_thread_local;

use super::route::Route;
use crate::scope::{self, WeakScope};

// The innermost placed route that this thread polls.
scoped_thread_local!(static CURRENT: Route);

thread_local! {
    /// The part of the current poll that was spent in inner routes.
    static INNER: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The parts of a poll of a route that are told apart.
pub(super) struct Shares {
    /// The time spent in inner routes, whose poll time that is.
    pub(super) inner: Duration,
    /// The bytes of a request's body that the route took, and no inner one.
    pub(super) body_bytes: u64,
}

/// Polls a future of this route.
pub(super) fn within<R>(route: &Route, poll: impl FnOnce() -> R) -> (R, Shares) {
    let _restored = Restored(INNER.replace(Duration::ZERO));
    let (polled, body_bytes) = body_bytes_during(|| CURRENT.set(route, poll));
    let inner = INNER.get();
    (polled, Shares { inner, body_bytes })
}

/// Records the time of a poll of a placed route, so that the routes around it are not charged for
/// it.
pub(super) fn took(time: Duration) {
    INNER.set(INNER.get() + time);
}

/// Restores the time of the outer route, after a panic too.
struct Restored(Duration);

impl Drop for Restored {
    fn drop(&mut self) {
        INNER.set(self.0);
    }
}

/// Passes the route for which the calling thread works at the moment, if there is one.
pub(crate) fn with_current<R>(use_it: impl FnOnce(&Route) -> R) -> Option<R> {
    CURRENT.is_set().then(|| CURRENT.with(use_it))
}

/// Returns the scope of the outer route, or else of the request that this thread works for: behind
/// a placement that may be on a stage, where no request is found.
pub(crate) fn scope() -> Option<WeakScope> {
    with_current(Route::scope).unwrap_or_else(scope::current)
}

/// Makes the outer route yield; called by a placement that is about to run its service.
pub(crate) fn yield_to_inner() {
    with_current(Route::yield_to_inner);
}
