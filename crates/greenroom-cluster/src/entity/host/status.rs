use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// A host at one moment.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct HostStatus {
    /// The kind of entity.
    pub kind: &'static str,
    /// The entities that are active, or on their way to be or not to be.
    pub entities: usize,
    /// Those of them that are idle.
    pub idle: usize,
    /// The messages that wait or are handled.
    pub in_flight: usize,
    /// The activations since the host began.
    pub activated: u64,
    /// The activations that failed.
    pub not_activated: u64,
    /// The activations that ended because the entity was idle, or the node drained.
    pub passivated: u64,
    /// The activations that ended because a later one had written.
    pub fenced: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    activated: AtomicU64,
    not_activated: AtomicU64,
    passivated: AtomicU64,
    fenced: AtomicU64,
}

impl Counts {
    pub(super) fn activated(&self) {
        self.activated.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn not_activated(&self) {
        self.not_activated.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn passivated(&self) {
        self.passivated.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn fenced(&self) {
        self.fenced.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(
        &self,
        kind: &'static str,
        entities: usize,
        idle: usize,
        in_flight: usize,
    ) -> HostStatus {
        HostStatus {
            kind,
            entities,
            idle,
            in_flight,
            activated: self.activated.load(Ordering::Relaxed),
            not_activated: self.not_activated.load(Ordering::Relaxed),
            passivated: self.passivated.load(Ordering::Relaxed),
            fenced: self.fenced.load(Ordering::Relaxed),
        }
    }
}
