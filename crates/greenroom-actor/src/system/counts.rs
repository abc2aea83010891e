use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the actors of one type.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    spawned: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
    restarted: AtomicU64,
}

impl Counts {
    pub(crate) fn spawned(&self) {
        self.spawned.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn restarted(&self) {
        self.restarted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn alive(&self) -> u64 {
        // Read in this order, the difference is never negative.
        let ended = self.ended.load(Ordering::Acquire);
        self.spawned.load(Ordering::Acquire).saturating_sub(ended)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.restarted.load(Ordering::Relaxed)
    }

    pub(crate) fn total(&self) -> u64 {
        self.spawned.load(Ordering::Relaxed)
    }
}
