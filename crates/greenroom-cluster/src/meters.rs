//! Counters, for the crate `metrics` and for the status.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, counter};

pub(crate) struct Meters {
    asks: Counter,
    tells: Counter,
    delivered: Counter,
    /// Dead letters of this node since it connected.
    pub(crate) dead_letters: AtomicU64,
    /// Asks of this node that were rejected at one node and went to another.
    pub(crate) elsewhere: AtomicU64,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self {
            asks: counter!("greenroom_cluster_asks_total"),
            tells: counter!("greenroom_cluster_tells_total"),
            delivered: counter!("greenroom_cluster_delivered_total"),
            dead_letters: AtomicU64::new(0),
            elsewhere: AtomicU64::new(0),
        }
    }

    pub(crate) fn asked(&self) {
        self.asks.increment(1);
    }

    pub(crate) fn told(&self) {
        self.tells.increment(1);
    }

    /// Counts a durable message that was handled here.
    pub(crate) fn delivered(&self) {
        self.delivered.increment(1);
    }

    /// Counts an ask that had no reply.
    #[allow(clippy::unused_self, reason = "it is a meter like the others")]
    pub(crate) fn failed(&self, error: &'static str) {
        counter!("greenroom_cluster_ask_errors_total", "error" => error).increment(1);
    }

    /// Counts a message that came here and was not handled, and whose sender does not hear of it.
    pub(crate) fn dead_letter(&self, reason: &'static str) {
        self.dead_letters.fetch_add(1, Ordering::Relaxed);
        counter!("greenroom_cluster_dead_letters_total", "reason" => reason).increment(1);
    }
}
