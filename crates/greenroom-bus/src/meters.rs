//! Counters, for [`Status`](crate::Status) and for the crate `metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, counter};
use tracing::debug;

use crate::PublishError;
use crate::remote::Entry;

/// A counter since the bus was created, and the metric that follows it.
pub(crate) struct Meter {
    count: AtomicU64,
    metric: Counter,
}

pub(crate) struct Meters {
    pub(crate) published: Meter,
    pub(crate) delivered: Meter,
    pub(crate) dropped: Meter,
    pub(crate) overflow_closed: Meter,
    pub(crate) reconnect_gaps: Meter,
    pub(crate) publish_failed: Meter,
    pub(crate) connections_lost: Meter,
    pub(crate) replayed: Meter,
}

impl Meters {
    /// Creates the meters. Looks up the recorder of the process once.
    pub(crate) fn new(adaptor: &'static str) -> Self {
        let meter = |metric| Meter {
            count: AtomicU64::new(0),
            metric,
        };
        Self {
            published: meter(counter!("greenroom_bus_published_total", "adaptor" => adaptor)),
            delivered: meter(counter!("greenroom_bus_delivered_total", "adaptor" => adaptor)),
            dropped: meter(counter!("greenroom_bus_dropped_total", "adaptor" => adaptor)),
            overflow_closed: meter(
                counter!("greenroom_bus_overflow_closed_total", "adaptor" => adaptor),
            ),
            reconnect_gaps: meter(
                counter!("greenroom_bus_reconnect_gaps_total", "adaptor" => adaptor),
            ),
            publish_failed: meter(
                counter!("greenroom_bus_publish_failed_total", "adaptor" => adaptor),
            ),
            connections_lost: meter(
                counter!("greenroom_bus_connections_lost_total", "adaptor" => adaptor),
            ),
            replayed: meter(counter!("greenroom_bus_replayed_total", "adaptor" => adaptor)),
        }
    }
}

impl Meters {
    /// Counts a message that was not published, and tells its publisher.
    pub(crate) fn fail(&self, entry: Entry, error: PublishError) {
        self.publish_failed.add(1);
        debug!(topic = %entry.topic, %error, "a message was not published");
        entry.fail(error);
    }
}

impl Meter {
    pub(crate) fn add(&self, number: u64) {
        if number > 0 {
            self.count.fetch_add(number, Ordering::Relaxed);
            self.metric.increment(number);
        }
    }

    pub(crate) fn read(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
