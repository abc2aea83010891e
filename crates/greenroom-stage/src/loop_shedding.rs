//! What a loop that is behind refuses. Who runs the loop measures its lag, and says so here.

use std::cell::Cell;

use axum::response::Response;

use crate::stage::Importance;
use crate::stage::error::overloaded;

thread_local! {
    static REFUSED_UP_TO: Cell<Option<Importance>> = const { Cell::new(None) };
}

/// After how many seconds to try again. A loop's lag is counted in milliseconds, and no loop knows
/// how many of its clients will come back.
const RETRY_AFTER: u64 = 1;

/// From now on, placements refuse on the calling thread every request up to this importance: with
/// 503 and `Retry-After`, before its handler runs. `None` ends that.
///
/// For servers, whose loops know their lag. `greenroom` says `Bulk` when a loop has for a second
/// been half as far behind as is allowed, and `Normal` when it was further. `Critical` requests are never refused; to
/// name them is to name `Normal`.
pub fn shed_on_this_loop(up_to: Option<Importance>) {
    REFUSED_UP_TO.set(up_to);
}

/// Whether this thread refuses requests of this importance.
pub(crate) fn is_shed(importance: Importance) -> bool {
    importance != Importance::Critical && Some(importance) <= REFUSED_UP_TO.get()
}

pub(crate) fn answer() -> Response {
    overloaded(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Importance::{Bulk, Critical, Normal};

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
