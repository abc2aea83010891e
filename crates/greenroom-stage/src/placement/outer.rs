//! Of two placements around a handler the outer one learns here that there is an inner one.

use std::cell::Cell;

use super::route::Route;

thread_local! {
    /// The innermost placed route that this thread polls.
    static CURRENT: Cell<Option<&'static Route>> = const { Cell::new(None) };
}

/// Polls something of this route.
pub(super) fn within<R>(route: &'static Route, poll: impl FnOnce() -> R) -> R {
    let _restored = Restored(CURRENT.replace(Some(route)));
    poll()
}

/// Makes the outer route the current one again, after a panic too.
struct Restored(Option<&'static Route>);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Said by whoever places what it is about to run.
pub(crate) fn yield_to_inner() {
    if let Some(outer) = CURRENT.get() {
        outer.yield_to_inner();
    }
}
