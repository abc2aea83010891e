use std::time::Duration;

use super::Pace;
use crate::placement::origin::Origin;
use crate::stage::{Rank, Submission};

/// The poll time of a body and its handler, for its route. It moves with the body.
///
/// Handler and body are one run of the route: its poll time is that of the handler and the longest
/// that the body had between two waits. It is recorded when the body ends or is dropped, or as soon
/// as it is long. Of a body that is dropped before its first part nobody knows what that would have
/// taken: nothing is recorded, or clients that leave early would make a long route a short one.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) origin: Origin,
    pub(super) pace: Pace,
    handler: Duration,
    /// The body has given a part, or ended.
    has_given: bool,
    is_recorded: bool,
}

impl Account {
    /// Creates the account of a body whose first part may be there, counted to the handler's time.
    pub(super) fn new(origin: Origin, handler: Duration, has_given: bool) -> Self {
        let short_run = origin.short_run();
        let long_run = origin.route().long_run();
        let mut account = Self {
            pace: Pace::new(short_run, long_run, !origin.is_inline),
            origin,
            handler,
            has_given,
            is_recorded: false,
        };
        account.record_if_long();
        account
    }

    /// Returns `true` if the next poll is to be on the stage.
    pub(super) fn is_on_stage(&self) -> bool {
        self.pace.is_on_stage() || self.origin.route().is_kept_on_stage()
    }

    /// Describes its next poll on the stage, which is likely short if those of its route are, or if
    /// nothing was known of them: else it would wait for what computes, and its handler did not. Of
    /// a body that was long itself that is known better.
    pub(super) fn submission(&self) -> Submission {
        let submission = self.origin.submission();
        let rank = submission.rank;
        Submission {
            rank: Rank::of(rank.priority),
            is_likely_short: (submission.is_likely_short || rank.is_unproven) && !self.is_long(),
            ..submission
        }
    }

    pub(super) fn polled(&mut self, poll_time: Duration, is_waiting: bool) {
        self.pace.record(poll_time, is_waiting);
        self.has_given |= !is_waiting;
        self.record_if_long();
    }

    fn record_if_long(&mut self) {
        if self.is_long() {
            self.record();
        }
    }

    fn is_long(&self) -> bool {
        self.poll_time() > self.origin.route().long_run()
    }

    fn record(&mut self) {
        if self.is_recorded {
            return;
        }
        self.is_recorded = true;
        self.origin.record(self.poll_time());
    }

    fn poll_time(&self) -> Duration {
        self.handler + self.pace.longest()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.has_given {
            self.record();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::placement::Placement;
    use crate::placement::lease::Lease;
    use crate::placement::route::Route;
    use crate::placement::rule::{LONG_RUN, STREAK_FIRST, STREAK_LIKELY};
    use crate::stage::lanes::Band;
    use crate::stage::{Priority, Stage};
    use http::Method;
    use std::sync::Arc;

    const TINY: Duration = Duration::from_micros(5);

    fn staged() -> (Lease, Arc<Route>) {
        let stage = Stage::builder("account").build().expect("it has threads");
        let placement = Lease::new(&Placement::auto_on(&stage).shared);
        let route = Arc::clone(
            placement
                .routes
                .at(placement.routes.find(&Method::GET, "/")),
        );
        (placement, route)
    }

    fn account((placement, route): &(Lease, Arc<Route>)) -> Account {
        let origin = Origin {
            placement: placement.clone(),
            at: placement.routes.find(&Method::GET, "/"),
            rank: Rank::of(Priority::Normal),
            client: Client::UNKNOWN,
            is_inline: route.is_inline(),
        };
        Account::new(origin, TINY, false)
    }

    /// It is not critical, whatever its request was admitted as: a download takes longer.
    #[test]
    fn the_body_of_a_new_route_is_short_until_it_is_long_itself() {
        let (placement, route) = staged();
        let rank = route.rank(Priority::Normal);
        assert!(rank.is_unproven);
        let origin = Origin {
            at: placement.routes.find(&Method::GET, "/"),
            placement,
            rank,
            client: Client::UNKNOWN,
            is_inline: false,
        };
        assert_eq!(origin.submission().band(), Band::Short);
        let mut account = Account::new(origin.of_body(), TINY, false);
        assert_eq!(account.submission().band(), Band::Short);
        account.polled(2 * LONG_RUN, false);
        assert_eq!(account.submission().band(), Band::Normal);
    }

    /// Whatever its route was so far.
    #[test]
    fn a_body_is_likely_short_with_its_route_until_it_is_long_itself() {
        let placed = staged();
        assert_eq!(account(&placed).submission().band(), Band::Normal);
        for _ in 0..STREAK_LIKELY {
            placed.1.record_staged(TINY);
        }
        let mut account = account(&placed);
        assert_eq!(account.submission().band(), Band::Short);
        account.polled(2 * LONG_RUN, false);
        for _ in 0..STREAK_LIKELY {
            placed.1.record_staged(TINY);
        }
        assert_eq!(account.submission().band(), Band::Normal);
    }

    #[test]
    fn a_route_whose_bodies_are_long_stays_staged() {
        let placed = staged();
        for _ in 0..4 * STREAK_FIRST {
            let mut account = account(&placed);
            account.polled(TINY, true);
            account.polled(2 * LONG_RUN, false);
        }
        let status = placed.1.status();
        assert_eq!((status.streak, status.moves), (0, 0));
        assert_eq!(status.poll_time.count, u64::from(4 * STREAK_FIRST));
    }

    #[test]
    fn a_body_that_is_dropped_before_its_first_part_is_no_short_run() {
        let placed = staged();
        for _ in 0..4 * STREAK_FIRST {
            account(&placed).polled(TINY, true);
        }
        let status = placed.1.status();
        assert_eq!((status.streak, status.poll_time.count), (0, 0));
        assert!(!placed.1.is_inline());
    }

    #[test]
    fn a_body_and_its_handler_are_one_run() {
        let placed = staged();
        for begun in 1..=STREAK_FIRST {
            assert!(!placed.1.is_inline());
            let mut account = account(&placed);
            account.polled(TINY, true);
            account.polled(TINY, false);
            assert_eq!(placed.1.status().streak, begun - 1);
        }
        assert!(placed.1.is_inline());
        account(&placed).polled(2 * LONG_RUN, true);
        assert!(!placed.1.is_inline());
    }
}
