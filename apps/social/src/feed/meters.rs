use std::fmt;

use metrics::{Counter, Gauge};

/// The metrics of the feed, recorded by the crate `metrics` as `social_feed_…`.
pub(super) struct Meters {
    pub(super) clients: Gauge,
    pub(super) events: Counter,
    pub(super) frames: Counter,
    /// Pages read from the storage for clients that were further behind than the events in memory.
    pub(super) pages: Counter,
    pub(super) resets: Counter,
    pub(super) unpublished: Counter,
}

impl Meters {
    pub(super) fn new() -> Self {
        Self {
            clients: metrics::gauge!("social_feed_clients"),
            events: metrics::counter!("social_feed_events_sent_total"),
            frames: metrics::counter!("social_feed_frames_sent_total"),
            pages: metrics::counter!("social_feed_pages_read_total"),
            resets: metrics::counter!("social_feed_resets_total"),
            unpublished: metrics::counter!("social_feed_events_unpublished_total"),
        }
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Meters")
    }
}
