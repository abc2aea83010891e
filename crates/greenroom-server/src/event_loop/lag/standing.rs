use std::time::Duration;

use tokio::time::Instant;

/// Distinguishes overload that stands from a burst that drains by itself, as `CoDel` does for a
/// queue (RFC 8289, section 4.2): only what every look has found too long for a whole interval
/// stands. One look that finds it short enough ends the interval.
///
/// After that it stays *armed* until nothing was shed for a whole interval. While it is armed, two
/// looks in a row are enough: else lasting overload would be admitted freely for an interval each
/// time that shedding has brought the loop up to date.
#[derive(Clone, Copy, Debug)]
pub(in crate::event_loop) struct Standing {
    after: Duration,
    too_long_since: Option<Instant>,
    shed_at: Option<Instant>,
}

impl Standing {
    pub(in crate::event_loop) fn after(after: Duration) -> Self {
        Self {
            after,
            too_long_since: None,
            shed_at: None,
        }
    }

    /// After a look.
    pub(in crate::event_loop) fn look(&mut self, is_too_long: bool, now: Instant) {
        self.too_long_since = is_too_long.then(|| self.too_long_since.unwrap_or(now));
    }

    /// Something is shed now, or was until now.
    pub(in crate::event_loop) fn shed(&mut self, now: Instant) {
        self.shed_at = Some(now);
    }

    /// Returns `true` if each look of an interval has found it too long.
    pub(in crate::event_loop) fn stands(&self, now: Instant) -> bool {
        self.too_long_since
            .is_some_and(|since| now - since >= self.after)
    }

    /// Returns `true` if two looks in a row are enough.
    pub(in crate::event_loop) fn is_armed(&self, now: Instant) -> bool {
        self.shed_at.is_some_and(|at| now - at < self.after)
    }
}
