//! A bounded queue and the threads behind it.

mod admit;
mod band_queue;
mod begun;
mod builder;
pub(crate) mod error;
mod handler;
mod join_handle;
pub(crate) mod lanes;
mod metered;
mod meters;
mod outcome;
mod priority;
pub(crate) mod scheduler;
pub(crate) mod shared;
mod shares;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod simulation_of_waits;
mod stats;
mod status;
mod submission;
mod sync;
mod thread_limit;
mod ticket;
mod worker;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use builder::{BuildError, StageBuilder, StageSettings};
pub use error::{Error, Panicked, Reason, Rejected, StageRejection};
pub use handler::OnStage;
pub use join_handle::JoinHandle;
pub(crate) use priority::Rank;
pub use priority::{BULK_WAIT_DIVISOR, CRITICAL_RESERVE_DIVISOR, Priority};
pub use shares::Share;
pub use status::{Sheds, StageStatus, Threads};

use crate::placement::outer;
use crate::scope::{Listing, StatusScope};
use metered::Metered;
use shared::Shared;
pub(crate) use submission::{RouteName, Submission};
use ticket::Ticket;

/// A bounded queue and its threads, for work that is long or of unknown length. Clones are cheap
/// and are the same stage; when the last is gone and its work done, its threads end. A placement
/// keeps its stage.
///
/// ```
/// use std::time::Duration;
/// use greenroom_stage::Stage;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stage = Stage::builder("cpu")
///     .threads(1..=2)
///     .queue_wait_max(Duration::from_millis(500))
///     .build()?;
/// let sum = stage.run(|| (1..=100).sum::<u32>()).await?;
/// assert_eq!(sum, 5_050);
///
/// let slept = stage.spawn(async {
///     tokio::time::sleep(Duration::from_millis(1)).await; // holds no thread of the stage
///     "slept"
/// });
/// assert_eq!(slept.await?, "slept");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Stage(Arc<Owner>);

#[derive(Debug)]
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.scheduler.close();
    }
}

static GLOBAL: OnceLock<Stage> = OnceLock::new();

/// The stages of the process. The watchers of a process, such as its status, find them here.
pub(crate) static STAGES: Listing<Shared> = Listing::new();

impl Stage {
    /// Returns the settings of a stage, beginning with the defaults. The threads are named after
    /// it; names need not be unique.
    #[must_use]
    pub fn builder(name: impl Into<String>) -> StageBuilder {
        StageBuilder::new(name.into())
    }

    /// Returns the default stage of the process: that of [`StageBuilder::build_global`], or else
    /// one with the default settings, built when it is first needed.
    ///
    /// # Panics
    ///
    /// If the system has no threads to give.
    #[must_use]
    pub fn global() -> &'static Self {
        GLOBAL.get_or_init(|| {
            let built = Self::builder("stage").build();
            built.unwrap_or_else(|error| panic!("{error}"))
        })
    }

    /// Runs a function on this stage, blocking or computing as it likes.
    pub fn run<F, T>(&self, function: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn(async move { function() })
    }

    /// Runs a function for which the caller knows, about, how long it will want a processor.
    ///
    /// The statement predicts the wait of later work, and is charged to the client and the route
    /// when the run begins, instead of the mean of the route; the time used in fact corrects it
    /// when the run ends. Only proportions matter: the stage learns how far statements of a route
    /// are off ([`expected_of_stated`](crate::fair::Usage::expected_of_stated)). At most
    /// [`STATED_MAX`](crate::fair::STATED_MAX) is expected.
    ///
    /// ```
    /// use std::time::Duration;
    /// use greenroom_stage::Stage;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stage = Stage::builder("pictures").threads(1..=2).build()?;
    /// let pixels = vec![7_u8; 12_000];
    /// let stated = Duration::from_nanos(25) * u32::try_from(pixels.len())?;
    /// let sum = stage.run_stating(stated, move || {
    ///     pixels.iter().copied().map(u64::from).sum::<u64>()
    /// });
    /// assert_eq!(sum.await?, 84_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_stating<F, T>(&self, cost: Duration, function: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let submission = Submission {
            stated: Some(cost),
            ..self.submission_of_caller(Priority::Normal)
        };
        self.submit(submission, async move { function() })
    }

    /// Runs a future on this stage. It may use all of tokio: it is polled within the runtime on
    /// which `spawn` was called, whose driver its timers and sockets belong to. While it waits it
    /// holds no thread. `tokio::task::spawn_local` cannot be used there.
    ///
    /// The future is polled by one thread at a time, not always the same. Each time it is woken it
    /// takes turns with new work: as much begins as ends.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_as(Priority::Normal, future)
    }

    /// Like [`spawn`](Self::spawn), with the priority that decides when it is shed.
    pub fn spawn_as<F>(&self, priority: Priority, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.submit(self.submission_of_caller(priority), future)
    }

    pub(crate) fn submit<F>(&self, submission: Submission, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let ticket = match self.shared().admit(submission, held_bytes::<F>()) {
            Ok(ticket) => ticket,
            Err(rejected) => return JoinHandle::of_rejected(rejected),
        };
        self.start(ticket, future)
    }

    /// Like [`submit`](Self::submit), for more of a response that has begun: it is never rejected
    /// and never late.
    pub(crate) fn submit_begun<F>(&self, submission: Submission, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.start(Shared::admit_begun(submission), future)
    }

    fn start<F>(&self, ticket: Arc<Ticket>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let work = Metered::new(future, Arc::clone(&ticket), Arc::clone(self.shared()));
        let shared = Arc::clone(self.shared());
        let (runnable, task) = async_task::Builder::new()
            .metadata(Arc::clone(&ticket))
            .spawn(|_| work, move |work| shared.schedule(work));
        runnable.schedule();
        JoinHandle::admitted(task.fallible(), ticket, self.clone())
    }

    /// Makes an axum handler from a synchronous function, extractors and all.
    ///
    /// Its arguments are extracted where the request came in, then the function runs here. If the
    /// stage is overloaded, the request is rejected before its body is read.
    ///
    /// ```
    /// use axum::{Router, extract::Path, routing::get};
    /// use greenroom_stage::Stage;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// fn block(Path(millis): Path<u64>) -> String {
    ///     std::thread::sleep(std::time::Duration::from_millis(millis));
    ///     format!("blocked for {millis} ms\n")
    /// }
    /// let stage = Stage::builder("legacy").build()?;
    /// let app: Router = Router::new().route("/block/{millis}", get(stage.handler(block)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn handler<F>(&self, function: F) -> OnStage<F> {
        OnStage::new(self.clone(), function)
    }

    /// Returns the state of this stage at this moment.
    #[must_use]
    pub fn status(&self) -> StageStatus {
        self.shared().status()
    }

    /// Returns the predicted wait of a run that comes last, as
    /// [`status`](Self::status) has it: for those who choose between several stages.
    #[must_use]
    pub fn predicted_wait(&self) -> Duration {
        self.shared().longest_wait()
    }

    /// Returns the stage's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared().settings.name
    }

    pub(crate) fn make_global(self) -> Result<(), Self> {
        GLOBAL.set(self)
    }

    pub(crate) fn would_admit(&self, priority: Priority) -> Result<(), Rejected> {
        self.shared()
            .would_admit(self.submission_of_caller(priority))
    }

    /// Claims this stage for a scope, unless it is the default stage, which is everybody's.
    pub(crate) fn claim(&self, scope: &StatusScope) {
        let is_global = GLOBAL
            .get()
            .is_some_and(|global| Arc::ptr_eq(global.shared(), self.shared()));
        if !is_global {
            STAGES.claim(self.shared(), scope);
        }
    }

    /// Returns a number that no other stage of the process has, nor will have; at least 1.
    pub(crate) fn number(&self) -> u64 {
        self.shared().number
    }

    fn submission_of_caller(&self, priority: Priority) -> Submission {
        outer::with_current(|route| route.note_stage(self));
        Submission::of_caller(priority)
    }

    fn new(shared: Arc<Shared>) -> Self {
        Self(Arc::new(Owner(shared)))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }
}

/// Returns the bytes that work of this type takes while it waits: its future, its ticket, and their
/// headers on the heap.
fn held_bytes<F>() -> usize {
    const AROUND: usize = 256;
    size_of::<F>() + size_of::<Ticket>() + AROUND
}
