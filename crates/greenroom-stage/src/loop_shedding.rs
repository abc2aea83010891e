//! Rejection of requests by a loop that is behind. The server that runs the loop measures its lag
//! and sets the limit here.

use std::cell::Cell;

use axum::response::Response;

use crate::stage::Priority;
use crate::stage::error::overloaded;

thread_local! {
    static REJECTED_UP_TO: Cell<Option<Priority>> = const { Cell::new(None) };
}

/// The `Retry-After` of such rejections, in seconds. A loop's lag is counted in milliseconds, and
/// no loop knows how many of its clients will come back.
const RETRY_AFTER: u64 = 1;

/// Makes placements on the calling thread reject every request up to this priority with 503 and
/// `Retry-After`, before its handler runs. `None` ends that.
///
/// For servers, whose loops know their lag. `greenroom` sets `Bulk` when a loop has for a second
/// been half as far behind as is allowed, and `Normal` when it was further. `Critical` requests are
/// never rejected; to name them is to name `Normal`.
pub fn shed_on_this_loop(up_to: Option<Priority>) {
    REJECTED_UP_TO.set(up_to);
}

/// True if this thread rejects requests of this priority.
pub(crate) fn is_shed(priority: Priority) -> bool {
    priority != Priority::Critical && Some(priority) <= REJECTED_UP_TO.get()
}

pub(crate) fn rejection() -> Response {
    overloaded(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Priority::{Bulk, Critical, Normal};

    #[test]
    fn the_least_important_goes_first_and_critical_never() {
        let shed_of = |up_to| {
            shed_on_this_loop(up_to);
            [Bulk, Normal, Critical].map(is_shed)
        };
        assert_eq!(shed_of(None), [false, false, false]);
        assert_eq!(shed_of(Some(Bulk)), [true, false, false]);
        assert_eq!(shed_of(Some(Normal)), [true, true, false]);
        assert_eq!(shed_of(Some(Critical)), [true, true, false]);
    }
}
