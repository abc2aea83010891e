//! The supervisor's task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::backoff::{Backoff, HEALTHY_AFTER};
use super::files::Files;
use super::generation::{Generation, Origin, TakeOver};
use super::report::{KilledWorker, ShutdownReport};
use super::shared::Shared;
use crate::error::StartError;

/// The number of commands that may wait for the supervisor.
pub(super) const COMMANDS_MAX: usize = 16;

/// A command of a gateway's owner.
pub(crate) enum Command {
    Reload(oneshot::Sender<ReloadResult>),
    Shutdown(oneshot::Sender<ShutdownReport>),
}

/// The number of the generation that serves after a reload.
pub(crate) type ReloadResult = Result<u32, Arc<StartError>>;

pub(super) struct Supervisor {
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) origin: Origin,
    pub(super) current: Generation,
    pub(super) files: Option<Files>,
    /// The private directory, which is removed when this is dropped.
    pub(super) directory: Option<TempDir>,
    pub(super) monitor: JoinSet<()>,
}

/// The start of a generation that is to follow the one that serves.
#[derive(Default)]
struct Change {
    /// The generation that is starting; at most one.
    starting: JoinSet<Result<Generation, StartError>>,
    /// True if it replaces one that was lost, and was not asked for.
    is_recovery: bool,
    /// The replies to those that wait for the one that is starting.
    waiting: Vec<oneshot::Sender<ReloadResult>>,
    /// The replies to those that asked too late for it, and wait for the one after.
    next: Option<Vec<oneshot::Sender<ReloadResult>>>,
}

/// The losses of zygotes in a row.
#[derive(Default)]
struct Losses {
    backoff: Backoff,
    /// The generation that has lost its zygote last.
    last: Option<u32>,
}

enum Event {
    Command(Option<Command>),
    Files(Vec<std::path::PathBuf>),
    Started(Result<Box<Generation>, StartError>),
    Lost,
}

impl Supervisor {
    /// Runs until the command to shut down, or until the last gateway is dropped.
    pub(super) async fn run(mut self) {
        let (mut change, mut retiring) = (Change::default(), JoinSet::new());
        let mut losses = Losses::default();
        loop {
            match self.next_event(&mut change, &mut retiring).await {
                Event::Command(Some(Command::Reload(reply))) => {
                    change.request(&self, Some(reply));
                }
                Event::Command(Some(Command::Shutdown(reply))) => {
                    change.starting.shutdown().await;
                    // The caller may be gone.
                    reply.send(self.shut_down(retiring).await).ok();
                    return;
                }
                Event::Command(None) => return,
                Event::Files(paths) => {
                    tracing::info!("{} changed: reloading", names(&paths));
                    change.request(&self, None);
                }
                Event::Lost => self.recover(&mut change, losses.rest(&self.current)),
                Event::Started(Ok(generation)) => {
                    retiring.spawn(self.take_over(*generation, &mut change).drain());
                    change.go_on(&self);
                }
                Event::Started(Err(error)) => {
                    self.keep_current(error, &mut change);
                    change.go_on(&self);
                }
            }
        }
    }

    async fn next_event(&mut self, change: &mut Change, retiring: &mut JoinSet<()>) -> Event {
        loop {
            tokio::select! {
                command = self.commands.recv() => return Event::Command(command),
                paths = changed(&mut self.files) => return Event::Files(paths),
                Some(started) = change.starting.join_next() => {
                    let started = started.expect("nothing panics as it starts");
                    return Event::Started(started.map(Box::new));
                }
                () = self.current.lost(),
                    if change.starting.is_empty() && !self.shared.is_closed() =>
                {
                    return Event::Lost;
                }
                Some(_) = retiring.join_next() => {}
            }
        }
    }

    fn recover(&self, change: &mut Change, rest: Duration) {
        if let Origin::Attached(_) = self.origin {
            tracing::error!("the process that forks the workers has ended");
            return self.shared.close();
        }
        tracing::error!("a zygote ended unasked; starting another one after {rest:?}");
        self.shared
            .counters
            .restarts
            .fetch_add(1, Ordering::Relaxed);
        change.is_recovery = true;
        change.start(self, rest);
    }

    /// Lets a generation serve, and returns the one that served before.
    fn take_over(&mut self, generation: Generation, change: &mut Change) -> Generation {
        let number = generation.number;
        self.shared.note_serving(number);
        let before = std::mem::replace(&mut self.current, generation);
        // Before any reply: no request goes to the old code any more.
        for member in self.shared.members() {
            if member.generation < number {
                self.shared.pool.drain(member.key);
            }
        }
        change.count(&self.shared.counters.reloads);
        tracing::info!("{} is loaded anew", self.shared.settings.name());
        change.reply(&Ok(number));
        before
    }

    fn keep_current(&self, error: StartError, change: &mut Change) {
        change.count(&self.shared.counters.reloads_failed);
        tracing::error!("what was loaded before serves on, because of: {error}");
        change.reply(&Err(Arc::new(error)));
    }

    async fn shut_down(self, mut retiring: JoinSet<()>) -> ShutdownReport {
        let workers = self.shared.members();
        retiring.spawn(self.current.drain());
        while retiring.join_next().await.is_some() {}
        self.shared.all_gone().await;
        drop(self.monitor);
        drop(self.directory);
        self.shared.close();
        let late = workers.iter().filter(|worker| worker.was_late());
        ShutdownReport {
            killed: late
                .map(|worker| KilledWorker {
                    key: worker.key,
                    pid: worker.pid.as_raw_nonzero().get(),
                })
                .collect(),
        }
    }
}

impl Losses {
    /// Returns the time to rest before the zygote of `lost` is replaced. It is asked again when
    /// that fails.
    fn rest(&mut self, lost: &Generation) -> Duration {
        let is_new = self.last.replace(lost.number) != Some(lost.number);
        if is_new && lost.since.elapsed() >= HEALTHY_AFTER {
            self.backoff.reset();
        }
        self.backoff.rest()
    }
}

impl Change {
    fn request(&mut self, supervisor: &Supervisor, reply: Option<oneshot::Sender<ReloadResult>>) {
        if self.starting.is_empty() {
            self.waiting.extend(reply);
            self.start(supervisor, Duration::ZERO);
        } else {
            self.next.get_or_insert_default().extend(reply);
        }
    }

    fn start(&mut self, supervisor: &Supervisor, rest: Duration) {
        let (shared, origin) = (Arc::clone(&supervisor.shared), supervisor.origin.clone());
        self.starting.spawn(async move {
            tokio::time::sleep(rest).await;
            // Until then the one before serves with all of its workers.
            Generation::start(shared, origin, TakeOver::AllWorkers).await
        });
    }

    /// Counts its end, if it was a reload.
    fn count(&mut self, counter: &AtomicU64) {
        if !std::mem::take(&mut self.is_recovery) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn reply(&mut self, result: &ReloadResult) {
        for reply in self.waiting.drain(..) {
            // The caller may be gone.
            reply.send(result.clone()).ok();
        }
    }

    /// Starts the generation that was asked for meanwhile.
    fn go_on(&mut self, supervisor: &Supervisor) {
        if let Some(waiting) = self.next.take() {
            self.waiting = waiting;
            self.start(supervisor, Duration::ZERO);
        }
    }
}

async fn changed(files: &mut Option<Files>) -> Vec<std::path::PathBuf> {
    match files {
        Some(files) => files.changed().await,
        None => std::future::pending().await,
    }
}

fn names(paths: &[std::path::PathBuf]) -> String {
    let names: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}
