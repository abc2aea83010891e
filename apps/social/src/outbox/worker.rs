//! The actor that does the tasks of one kind.

use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use futures_util::FutureExt;
use greenroom::actor::{Actor, BoxError, Context, Handler, Timer};
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Clock, backoff};
use crate::model::{Outcome, Task, TaskKind};
use crate::store::{self, Store, StoreError};

/// Tasks of one kind that one replica does at a time.
pub(super) const AT_ONCE: usize = 16;
/// Time for which a claimed task belongs to this replica.
const LEASE: Duration = Duration::from_mins(1);
/// Longest time of one try, so that its outcome can be recorded within the lease.
pub(super) const TRY_MAX: Duration = Duration::from_secs(35);
/// Time during which recording an outcome is retried while the storage is unavailable. After it the
/// task is done again.
const SETTLE_MAX: Duration = Duration::from_secs(15);
/// Interval of looking for tasks without a notification: for tasks of replicas that are gone.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Shortest time between two looks without a notification.
const LOOK_MIN: Duration = Duration::from_millis(100);

/// The work on tasks of one kind.
pub(super) trait Doer: Send + Sync + 'static {
    /// The kind of its tasks.
    const KIND: TaskKind;
    /// Interval of [`chore`](Self::chore); `None` if there is none.
    const CHORE_EVERY: Option<Duration> = None;

    /// Time after which a task is given up. Default: never.
    fn give_up_after(&self) -> Option<Duration> {
        None
    }

    /// Tries a task once.
    fn attempt(&self, task: &Task) -> impl Future<Output = Result<(), Setback>> + Send;

    /// Does regular work, first at the start; if it fails, it is done at the next interval.
    fn chore(&self) -> impl Future<Output = store::Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// The reason for which a task was not done.
#[derive(Debug, PartialEq)]
pub(super) enum Setback {
    /// It will never succeed, for this reason.
    Permanent(String),
    /// It may succeed later.
    Temporary {
        error: String,
        /// The delay that a remote server asked for, if any.
        after: Option<Duration>,
    },
    /// It went well, and there is more to do than fits in one try.
    Unfinished,
}

impl Setback {
    pub(super) fn permanent(reason: impl Display) -> Self {
        Self::Permanent(reason.to_string())
    }

    pub(super) fn temporary(error: impl Display) -> Self {
        let error = error.to_string();
        Self::Temporary { error, after: None }
    }
}

impl From<StoreError> for Setback {
    fn from(error: StoreError) -> Self {
        Self::temporary(error)
    }
}

/// Parses a task's payload.
pub(super) fn payload<T: serde::de::DeserializeOwned>(task: &Task) -> Result<T, Setback> {
    serde_json::from_value(task.payload.clone())
        .map_err(|error| Setback::Permanent(format!("its payload cannot be understood: {error}")))
}

/// A message to look for tasks that are due.
#[derive(Clone, Debug)]
pub(super) struct Look;

/// The result of a look.
struct Looked(store::Result<Found>);

struct Found {
    tasks: Vec<Task>,
    /// Time until the next task is due.
    next: Option<Duration>,
}

/// A message that a task has ended, for now.
struct Finished;

#[derive(Clone)]
struct Chore;

struct ChoreDone;

/// State that the actor shares with its running tasks.
pub(super) struct Shared<D> {
    doer: D,
    store: Arc<dyn Store>,
    clock: Clock,
}

#[derive(PartialEq)]
enum Looking {
    No,
    Yes,
    /// A notification came during the look.
    AndAgain,
}

/// An actor that claims tasks of one kind and does them, up to [`AT_ONCE`] at a time.
pub(super) struct Worker<D> {
    shared: Arc<Shared<D>>,
    looking: Looking,
    next: Option<Timer>,
    is_at_chore: bool,
    under_way: JoinSet<()>,
}

impl<D: Doer> Worker<D> {
    pub(super) fn new(shared: &Arc<Shared<D>>) -> Self {
        Self {
            shared: Arc::clone(shared),
            looking: Looking::No,
            next: None,
            is_at_chore: false,
            under_way: JoinSet::new(),
        }
    }

    fn look(&mut self, context: &mut Context<Self>) {
        while self.under_way.try_join_next().is_some() {}
        let free = AT_ONCE - self.under_way.len();
        // Claims several at a time: one look for each finished task would be a query each.
        if free < AT_ONCE / 2 {
            return; // the next finished task triggers another look
        }
        let shared = Arc::clone(&self.shared);
        let look = async move { shared.look(free).await };
        if context.pipe(look, Looked).is_ok() {
            self.looking = Looking::Yes;
        }
    }

    fn begin(&mut self, tasks: Vec<Task>, context: &Context<Self>) {
        for task in tasks {
            let (shared, me) = (Arc::clone(&self.shared), context.myself().clone());
            self.under_way.spawn(async move {
                shared.run(task).await;
                // An error means that the actor has ended and needs no message.
                let _ = me.send(Finished).await;
            });
        }
    }

    fn look_in(&mut self, wait: Duration, context: &mut Context<Self>) {
        if let Some(timer) = self.next.replace(context.once(wait, Look)) {
            timer.cancel();
        }
    }
}

impl<D: Doer> Actor for Worker<D> {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        self.look(context);
        if let Some(every) = D::CHORE_EVERY {
            context.every(every, Chore);
            context.once(Duration::ZERO, Chore);
        }
        Ok(())
    }

    /// Finishes the running tasks, so that an orderly shutdown sends nothing twice.
    async fn stopped(&mut self, _: &mut Context<Self>) {
        while self.under_way.join_next().await.is_some() {}
    }
}

impl<D: Doer> Handler<Look> for Worker<D> {
    type Reply = ();

    fn handle(&mut self, _: Look, context: &mut Context<Self>) {
        match self.looking {
            Looking::No => self.look(context),
            Looking::Yes | Looking::AndAgain => self.looking = Looking::AndAgain,
        }
    }
}

impl<D: Doer> Handler<Looked> for Worker<D> {
    type Reply = ();

    fn handle(&mut self, looked: Looked, context: &mut Context<Self>) {
        let is_called = self.looking == Looking::AndAgain;
        self.looking = Looking::No;
        let wait = match looked.0 {
            Ok(found) => {
                self.begin(found.tasks, context);
                found
                    .next
                    .map_or(LOOK_EVERY, |next| next.clamp(LOOK_MIN, LOOK_EVERY))
            }
            Err(error) => {
                tracing::warn!(kind = %D::KIND, %error, "the outbox cannot be read; it is tried \
                    again");
                LOOK_EVERY
            }
        };
        self.look_in(wait, context);
        if is_called {
            self.look(context);
        }
    }
}

impl<D: Doer> Handler<Finished> for Worker<D> {
    type Reply = ();

    fn handle(&mut self, _: Finished, context: &mut Context<Self>) {
        Handler::<Look>::handle(self, Look, context);
    }
}

impl<D: Doer> Handler<Chore> for Worker<D> {
    type Reply = ();

    fn handle(&mut self, _: Chore, context: &mut Context<Self>) {
        if self.is_at_chore {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let chore = async move {
            if let Err(error) = shared.doer.chore().await {
                tracing::warn!(kind = %D::KIND, %error, "a regular chore failed; it is retried");
            }
        };
        self.is_at_chore = context.pipe(chore, |()| ChoreDone).is_ok();
    }
}

impl<D: Doer> Handler<ChoreDone> for Worker<D> {
    type Reply = ();

    fn handle(&mut self, _: ChoreDone, context: &mut Context<Self>) {
        self.is_at_chore = false;
        Handler::<Look>::handle(self, Look, context);
    }
}

impl<D: Doer> Shared<D> {
    pub(super) fn new(doer: D, store: &Arc<dyn Store>, clock: &Clock) -> Self {
        Self {
            doer,
            store: Arc::clone(store),
            clock: Arc::clone(clock),
        }
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    async fn look(&self, free: usize) -> store::Result<Found> {
        let limit = u32::try_from(free).unwrap_or(u32::MAX);
        let tasks = self
            .store
            .claim_tasks(D::KIND, self.now(), LEASE, limit)
            .await?;
        let next = match self.store.next_task(D::KIND).await {
            // What is claimed is done all the same: else it would wait for the end of its lease.
            Err(_) if !tasks.is_empty() => None,
            next => next?,
        };
        let until =
            |due: Timestamp| Duration::try_from(due.duration_since(self.now())).unwrap_or_default();
        let next = next.map(until);
        Ok(Found { tasks, next })
    }

    async fn run(&self, task: Task) {
        let outcome = match self.attempt(&task).await {
            Ok(()) => Outcome::Done,
            Err(setback) => backoff::outcome(&task, setback, self.now(), self.doer.give_up_after()),
        };
        report(&task, &outcome);
        self.settle(&task, &outcome).await;
    }

    async fn attempt(&self, task: &Task) -> Result<(), Setback> {
        let attempt = AssertUnwindSafe(self.doer.attempt(task)).catch_unwind();
        match timeout(TRY_MAX, attempt).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Setback::temporary("it panicked")),
            Err(_) => Err(Setback::temporary("it took too long")),
        }
    }

    async fn settle(&self, task: &Task, outcome: &Outcome) {
        let settle = || self.store.settle_task(task, outcome.clone());
        let backoff = ExponentialBuilder::default()
            .with_jitter()
            .without_max_times();
        let settled = timeout(SETTLE_MAX, settle.retry(backoff)).await;
        if !matches!(settled, Ok(Ok(()))) {
            tracing::warn!(
                key = task.key,
                "the outcome of a task could not be recorded; it will be done again"
            );
        }
    }
}

fn report(task: &Task, outcome: &Outcome) {
    let (key, kind, attempts) = (&task.key, task.kind, task.attempts);
    match outcome {
        Outcome::Done => tracing::debug!(key, %kind, attempts, "done"),
        Outcome::GaveUp(reason) => tracing::warn!(key, %kind, attempts, reason, "gave up"),
        Outcome::Retry { due, error } => {
            tracing::info!(key, %kind, attempts, error, %due, "not done; it will be tried again");
        }
    }
}
