use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::idle::Idle;
use super::probe::Probe;
use crate::system::ActorSystem;

/// The actor system of a test: an [`ActorSystem`] that also moves the clock.
///
/// Clones are the same system.
#[derive(Clone)]
pub struct TestSystem {
    system: ActorSystem,
    seed: u64,
    idle: Arc<Idle>,
}

impl TestSystem {
    pub(super) fn new(system: ActorSystem, seed: u64, idle: Arc<Idle>) -> Self {
        Self { system, seed, idle }
    }

    /// Returns the seed of this run.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Lets actors and tasks run until none has anything to do. Time stands still meanwhile.
    ///
    /// Never ready if an actor never rests.
    pub async fn settle(&self) {
        self.idle.until().await;
    }

    /// Moves the clock, and lets actors and tasks run before, at every timer in between, and
    /// afterwards until none has anything to do. Exact to a millisecond.
    pub async fn advance(&self, time: Duration) {
        self.settle().await;
        tokio::time::sleep(time).await;
        self.settle().await;
    }

    /// Spawns a probe that takes messages of this type, for the test to expect.
    #[must_use]
    pub fn probe<M: Send + 'static>(&self) -> Probe<M> {
        Probe::new(&self.system)
    }
}

impl Deref for TestSystem {
    type Target = ActorSystem;

    fn deref(&self) -> &ActorSystem {
        &self.system
    }
}

impl fmt::Debug for TestSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSystem")
            .field("system", &self.system)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
