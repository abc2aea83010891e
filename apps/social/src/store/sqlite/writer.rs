use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use greenroom::{JoinHandle, Stage};
use rusqlite::Connection;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::OPERATION_MAX;
use super::database::Database;
use super::error::{NotBegun, NotStored};
use crate::store::{Result, StoreError};

/// Writes that may wait; further ones are rejected.
const QUEUE_MAX: usize = 10_000;

/// Operations at which a batch is committed…
const BATCH_MAX: usize = 1_000;

/// … or the time after which it is.
const BATCH_TIME_MAX: Duration = Duration::from_millis(20);

/// The runner of writes, one after the other, on the stage.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Operation>>,
    _running: JoinHandle<()>,
}

impl Writer {
    pub(super) fn start(stage: &Stage, database: Database, connection: Connection) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let batches = Batches {
            database,
            connection,
            is_failing: false,
        };
        Self {
            queue,
            _running: stage.spawn(batches.run(waiting)),
        }
    }

    /// Returns when the operation was committed, or undone as a whole. If the future is dropped, it
    /// is one of these all the same. The wait is [`OPERATION_MAX`] at most.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (caller, reply) = oneshot::channel();
        let pending = Pending {
            operation: Some(operation),
            result: None,
            caller,
        };
        self.queue
            .try_send(Box::new(pending))
            .map_err(|error| match error {
                TrySendError::Full(_) => StoreError::unavailable(NotBegun::QueueFull),
                TrySendError::Closed(_) => StoreError::unavailable(NotBegun::WriterEnded),
            })?;
        match timeout(OPERATION_MAX, reply).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(StoreError::unavailable(NotBegun::WriterEnded)),
            Err(_) => Err(StoreError::unavailable(
                "it is unknown if it was stored: the disk did not respond in time",
            )),
        }
    }
}

struct Batches {
    database: Database,
    connection: Connection,
    is_failing: bool,
}

type Waiting = mpsc::Receiver<Box<dyn Operation>>;

impl Batches {
    async fn run(mut self, mut waiting: Waiting) {
        while let Some(first) = waiting.recv().await {
            let mut batch = vec![first];
            let stored = self.store(&mut batch, &mut waiting);
            let stored = stored.map_err(NotStored::because_of);
            if let Err(error) = &stored {
                self.recover(error);
                // They would fail alike, after a longer wait.
                while let Ok(next) = waiting.try_recv() {
                    batch.push(next);
                }
            } else if self.is_failing {
                self.is_failing = false;
                tracing::info!("writes are stored again");
            }
            for operation in batch {
                operation.reply(stored.clone());
            }
        }
    }

    /// Runs and commits the operations, and those that arrive meanwhile.
    fn store(&self, batch: &mut Vec<Box<dyn Operation>>, waiting: &mut Waiting) -> Result<()> {
        let began = Instant::now();
        self.execute("BEGIN IMMEDIATE")?;
        let mut done = 0;
        while let Some(operation) = batch.get_mut(done) {
            self.run_one(operation.as_mut())?;
            done += 1;
            if done < BATCH_MAX && began.elapsed() < BATCH_TIME_MAX {
                batch.extend(waiting.try_recv());
            }
        }
        self.execute("COMMIT")
    }

    /// Runs an operation, and undoes its changes if it fails.
    fn run_one(&self, operation: &mut dyn Operation) -> Result<()> {
        self.execute("SAVEPOINT operation")?;
        if operation.run(&self.connection)? == Fate::Undo {
            self.execute("ROLLBACK TO operation")?;
        }
        self.execute("RELEASE operation")
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// Makes the connection fit for the next batch. It is not closed before there is another one:
    /// on a full disk the first one to open a database cannot.
    fn recover(&mut self, error: &NotStored) {
        if !self.is_failing {
            self.is_failing = true;
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "writes are not stored"
            );
        }
        let is_clean = self.connection.is_autocommit() || self.execute("ROLLBACK").is_ok();
        if is_clean {
            return;
        }
        match self.database.open_writing() {
            Ok(connection) => self.connection = connection,
            Err(error) => tracing::error!(%error, "no other connection to the database"),
        }
    }
}

/// A write with a result of any type.
trait Operation: Send {
    /// Fails if the whole batch has been rolled back, as on a full disk.
    fn run(&mut self, db: &Connection) -> Result<Fate>;

    fn reply(self: Box<Self>, stored: Result<(), NotStored>);
}

/// The fate of an operation's changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Keep,
    Undo,
}

/// A write with a waiting caller.
struct Pending<F, T> {
    operation: Option<F>,
    result: Option<Result<T>>,
    caller: oneshot::Sender<Result<T>>,
}

impl<F, T> Operation for Pending<F, T>
where
    F: FnOnce(&Connection) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, db: &Connection) -> Result<Fate> {
        let has_left = self.caller.is_closed();
        let Some(operation) = self.operation.take().filter(|_| !has_left) else {
            return Ok(Fate::Undo);
        };
        let result = without_panic(|| operation(db));
        let fate = match result {
            // SQLite has rolled back the whole transaction by itself, as on a full disk.
            Err(error) if db.is_autocommit() => return Err(error),
            Err(_) => Fate::Undo,
            Ok(_) => Fate::Keep,
        };
        self.result = Some(result);
        Ok(fate)
    }

    fn reply(self: Box<Self>, stored: Result<(), NotStored>) {
        let reply = match stored {
            Ok(()) => self.result,
            Err(error) => Some(Err(error.into())),
        };
        if let Some(reply) = reply {
            // A caller that has left needs no result.
            let _ = self.caller.send(reply);
        }
    }
}

/// Catches panics: a mistake in one operation must not end the writer.
fn without_panic<T>(operation: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(operation))
        .unwrap_or_else(|_| Err(StoreError::broken("an operation panicked")))
}

#[cfg(test)]
mod tests;
