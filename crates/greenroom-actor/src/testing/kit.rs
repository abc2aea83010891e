use std::any::Any;
use std::env::VarError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::faults::Faults;
use super::idle::Idle;
use super::system::TestSystem;
use crate::dispatcher::Dispatcher;
use crate::panics::Panic;
use crate::supervision::Cause;
use crate::system::ActorSystemBuilder;

/// The environment variable that has a scenario run with one seed only.
pub const SEED_VARIABLE: &str = "GREENROOM_SEED";

/// The time that actors have to end when the scenario is over, in the time of the test.
const SHUTDOWN_MAX: Duration = Duration::from_mins(1);

/// Settings of a test: its seed, its [`Faults`], its actor system.
#[derive(Clone, Debug, Default)]
pub struct TestKit {
    seed: u64,
    faults: Faults,
    system: ActorSystemBuilder,
}

/// Runs a scenario with the default settings; see [`TestKit::run`].
///
/// # Panics
///
/// As [`TestKit::run`] does.
pub fn run<F: Future>(scenario: impl FnOnce(TestSystem) -> F) -> F::Output {
    TestKit::new().run(scenario)
}

/// Runs a scenario once for each seed, with the default settings; see [`TestKit::run_seeded`].
///
/// ```
/// use greenroom_actor::testing;
/// use greenroom_actor::{Actor, Context, Handler};
///
/// struct Last(u32);
/// impl Actor for Last {}
/// impl Handler<u32> for Last {
///     type Reply = u32;
///     fn handle(&mut self, number: u32, _: &mut Context<Self>) -> u32 {
///         std::mem::replace(&mut self.0, number)
///     }
/// }
///
/// testing::run_seeded(0..100, |system| async move {
///     let last = system.spawn(|| Last(0));
///     last.tell(1).expect("the mailbox has room");
///     assert_eq!(last.ask(2).await.expect("it is handled"), 1);
/// });
/// ```
///
/// # Panics
///
/// As [`TestKit::run_seeded`] does.
pub fn run_seeded<F>(seeds: impl IntoIterator<Item = u64>, scenario: impl FnMut(TestSystem) -> F)
where
    F: Future<Output = ()>,
{
    TestKit::new().run_seeded(seeds, scenario);
}

impl TestKit {
    /// Creates a test with seed 0, no faults, and the default settings of a system.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the seed of [`run`](Self::run), if the environment names none. Default: 0.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets the faults. Default: none.
    #[must_use]
    pub fn faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Sets the settings of the actor system. Its default dispatcher is replaced by the seeded one.
    #[must_use]
    pub fn system(self, system: ActorSystemBuilder) -> Self {
        Self { system, ..self }
    }

    /// Runs a scenario on a runtime of its own, on this thread, and shuts its actors down
    /// afterwards.
    ///
    /// # Panics
    ///
    /// If the scenario panics, within a tokio runtime, or if `GREENROOM_SEED` is set and is no
    /// number.
    pub fn run<F: Future>(&self, scenario: impl FnOnce(TestSystem) -> F) -> F::Output {
        self.run_with(environment_seed().unwrap_or(self.seed), scenario)
    }

    /// Runs a scenario once for each seed, or only for the one in `GREENROOM_SEED`. Each run has a
    /// fresh runtime and a fresh system.
    ///
    /// # Panics
    ///
    /// If the scenario panics, with the seed in the message; otherwise as [`run`](Self::run).
    pub fn run_seeded<F>(
        &self,
        seeds: impl IntoIterator<Item = u64>,
        mut scenario: impl FnMut(TestSystem) -> F,
    ) where
        F: Future<Output = ()>,
    {
        let mut run = |seed| {
            let once = || self.run_with(seed, &mut scenario);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(once)) {
                fail(seed, panic);
            }
        };
        match environment_seed() {
            Some(seed) => run(seed),
            None => seeds.into_iter().for_each(run),
        }
    }

    fn run_with<F: Future>(&self, seed: u64, scenario: impl FnOnce(TestSystem) -> F) -> F::Output {
        // The jitter of a back-off comes from this generator.
        fastrand::seed(seed);
        let idle = Arc::new(Idle::default());
        let runtime = runtime(&idle);
        let _armed = self.faults.arm(seed);
        runtime.block_on(async {
            let system = self
                .system
                .clone()
                .dispatcher("default", Dispatcher::seeded(seed))
                .build()
                .unwrap_or_else(|error| panic!("the actor system of the test: {error}"));
            let output = scenario(TestSystem::new(system.clone(), seed, idle)).await;
            system.shutdown(SHUTDOWN_MAX).await;
            output
        })
    }
}

/// Creates a runtime of one thread with a paused clock, which notes when there is nothing to run.
fn runtime(idle: &Arc<Idle>) -> Runtime {
    let idle = Arc::clone(idle);
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || idle.note())
        .build()
        .unwrap_or_else(|error| panic!("the runtime of the test: {error}"))
}

fn environment_seed() -> Option<u64> {
    match std::env::var(SEED_VARIABLE) {
        Ok(seed) => Some(seed.trim().parse().unwrap_or_else(|_| {
            panic!(
                "{SEED_VARIABLE} is `{seed}`; it must be a whole number from 0 to {}",
                u64::MAX
            )
        })),
        Err(VarError::NotPresent) => None,
        Err(error) => panic!("{SEED_VARIABLE}: {error}"),
    }
}

fn fail(seed: u64, panic: Box<dyn Any + Send>) -> ! {
    let cause = Cause::from_panic(&Panic::from(panic));
    panic!(
        "the scenario failed with seed {seed}: it {cause}\nreplay it with {SEED_VARIABLE}={seed}"
    )
}
