use std::time::Duration;

use serde::Serialize;

use super::lanes::Band;

/// The part of the stage's `queue_wait_max` that `bulk` work may wait for: a quarter.
pub const BULK_WAIT_DIVISOR: u32 = 4;

/// The part of `queue_max` that `critical` work may exceed it by: an eighth, at least one place.
pub const CRITICAL_RESERVE_DIVISOR: usize = 8;

/// The order in which work is rejected when a stage has too much to do.
///
/// | | may wait for | its place | rejected with `queue_wait_max` 500 ms, `queue_max` 4,096 |
/// |---|---|---|---|
/// | `Critical` | any time | before other new work | at 4,608 waiting |
/// | `Normal` | `queue_wait_max` | as it came | over 450 ms predicted, or at 4,096 waiting |
/// | `Bulk` | a quarter of it | when no `Normal` waits | over 112.5 ms, or at 4,096 waiting |
///
/// Normal work of a route that is likely short (see [`Rule`](crate::placement::Rule)) has its place
/// before other new work too: it waits for work that is as short, not for work that computes.
///
/// So bulk work is rejected first, and critical work last. Work that has begun is not rejected any
/// more, whatever its priority, and every 64th turn is that of bulk work that has begun, whatever
/// else waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Work that can come back later, such as a crawler's.
    Bulk,
    /// Most work.
    #[default]
    Normal,
    /// A health check, a log-in of the operator: cheap, and needed most when there is overload.
    Critical,
}

impl Priority {
    /// Returns the longest time that this may wait; `None` is any time. See
    /// [`admit`](crate::admission::admit).
    #[must_use]
    pub fn wait_max(self, queue_wait_max: Duration) -> Option<Duration> {
        match self {
            Self::Bulk => Some(queue_wait_max / BULK_WAIT_DIVISOR),
            Self::Normal => Some(queue_wait_max),
            Self::Critical => None,
        }
    }

    /// Returns the number of waiting runs at which this is rejected.
    #[must_use]
    pub fn queue_max(self, queue_max: usize) -> usize {
        match self {
            Self::Bulk | Self::Normal => queue_max,
            Self::Critical => {
                queue_max.saturating_add((queue_max / CRITICAL_RESERVE_DIVISOR).max(1))
            }
        }
    }

    fn band(self, is_likely_short: bool) -> Band {
        match (self, is_likely_short) {
            (Self::Critical, _) => Band::Critical,
            (Self::Normal, true) => Band::Short,
            (Self::Normal, false) => Band::Normal,
            (Self::Bulk, _) => Band::Bulk,
        }
    }
}

/// The importance of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    pub(crate) priority: Priority,
    /// Nothing is known of its route yet: it is admitted as critical work is, and has its place
    /// among short work.
    pub(crate) is_unproven: bool,
}

impl Rank {
    /// Returns the rank of work of which enough is known.
    pub(crate) fn of(priority: Priority) -> Self {
        Self {
            priority,
            is_unproven: false,
        }
    }

    /// Returns the priority with which it is admitted.
    pub(crate) fn admitted_as(self) -> Priority {
        if self.is_unproven {
            return Priority::Critical;
        }
        self.priority
    }

    pub(crate) fn band(self, is_likely_short: bool) -> Band {
        match self.priority {
            Priority::Normal | Priority::Bulk if self.is_unproven => Band::Short,
            priority => priority.band(is_likely_short),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_is_refused_first_and_critical_last() {
        let wait_max = |priority: Priority| priority.wait_max(Duration::from_millis(500));
        assert_eq!(wait_max(Priority::Bulk), Some(Duration::from_millis(125)));
        assert_eq!(wait_max(Priority::Normal), Some(Duration::from_millis(500)));
        assert_eq!(wait_max(Priority::Critical), None);
        assert_eq!(Priority::Critical.queue_max(4_096), 4_608);
        assert_eq!(Priority::Critical.queue_max(1), 2);
        assert_eq!(Priority::Critical.queue_max(usize::MAX), usize::MAX);
    }
}
