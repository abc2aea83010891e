//! One start of the application: a zygote and its workers.

use std::convert::Infallible;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::control::ReadyWorker;
use super::launcher::Launcher;
use super::order::Order;
use super::process::Process;
use super::shared::Shared;
use super::slot;
use super::zygote::{FirstWord, Loading, Zygote};
use crate::error::{EndStatus, StartError};
use crate::settings::Settings;

const PROCESS: &str = "the zygote";

/// A zygote with its workers. Dropping it kills its workers, and its zygote if that is its own.
pub(super) struct Generation {
    pub(super) number: u32,
    pub(super) since: Instant,
    orders: watch::Sender<Order>,
    /// Closed when all workers are gone.
    workers: mpsc::Receiver<Infallible>,
    slots: JoinSet<()>,
    zygote: Zygote,
    process: Option<Process>,
}

/// The origin of a generation's zygote.
#[derive(Clone)]
pub(super) enum Origin {
    /// Each generation starts its own zygote.
    Started,
    /// All generations share this zygote, which had loaded the application before this process
    /// began.
    Attached(Zygote),
}

/// The moment at which a generation begins to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeOver {
    /// As soon as it has a worker: no other generation serves.
    FirstWorker,
    /// As soon as it can serve as many requests as the one before it.
    AllWorkers,
}

impl Generation {
    /// Starts a generation and returns when it begins to serve; no worker takes requests before. If
    /// one fails until then, or the future is dropped, nothing is left of it.
    pub(super) async fn start(
        shared: Arc<Shared>,
        origin: Origin,
        at: TakeOver,
    ) -> Result<Self, StartError> {
        let number = shared.next_generation();
        let (zygote, process) = match origin {
            Origin::Attached(zygote) => (zygote, None),
            Origin::Started => {
                let (zygote, process) = start_zygote(&shared.settings, shared.directory()).await?;
                (zygote, Some(process))
            }
        };
        let (orders, order) = watch::channel(Order::Serve);
        let (alive, workers) = mpsc::channel(1);
        let launcher = Launcher {
            shared,
            generation: number,
            zygote: zygote.clone(),
            orders: order,
            alive,
        };
        let mut loading = load_all(&launcher);
        let ready = match await_ready(&mut loading, at).await {
            Ok(ready) => ready,
            Err(error) => {
                give_up(process).await;
                return Err(error);
            }
        };
        Ok(Self {
            number,
            since: Instant::now(),
            orders,
            workers,
            slots: activate_all(&launcher, ready, loading),
            zygote,
            process,
        })
    }

    /// Returns when its zygote is lost.
    pub(super) async fn lost(&self) {
        self.zygote.lost().await;
    }

    /// Lets the workers finish, and ends the zygote if it is its own.
    pub(super) async fn drain(self) {
        let Self {
            orders,
            mut workers,
            slots,
            zygote,
            process,
            ..
        } = self;
        orders.send_replace(Order::Drain);
        slots.join_all().await;
        // No message is ever sent: the channel closes with the last worker.
        workers.recv().await;
        drop(zygote);
        if let Some(process) = process {
            process.end().await;
        }
    }
}

/// The workers that load.
type LoadingWorkers = JoinSet<Result<ReadyWorker, StartError>>;

fn load_all(launcher: &Launcher) -> LoadingWorkers {
    // More loading at once than there are cores would only make each of them late.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = Arc::new(Semaphore::new(cores));
    let mut loading = JoinSet::new();
    for _ in 0..launcher.shared.settings.limits.workers {
        let (launcher, at_once) = (launcher.clone(), Arc::clone(&at_once));
        loading.spawn(async move {
            // It is never closed.
            let _permit = at_once.acquire().await.ok();
            launcher.start_worker().await
        });
    }
    loading
}

/// Waits for as many workers as are needed to begin to serve.
async fn await_ready(
    loading: &mut LoadingWorkers,
    at: TakeOver,
) -> Result<Vec<ReadyWorker>, StartError> {
    let mut ready = Vec::new();
    while let Some(worker) = loaded(loading).await {
        match worker {
            Ok(worker) => ready.push(worker),
            Err(error) => {
                loading.shutdown().await;
                return Err(error);
            }
        }
        if at == TakeOver::FirstWorker {
            break;
        }
    }
    Ok(ready)
}

async fn loaded(loading: &mut LoadingWorkers) -> Option<Result<ReadyWorker, StartError>> {
    let worker = loading.join_next().await?;
    Some(worker.expect("nothing panics as it loads, or is cancelled"))
}

/// Waits for a zygote that failed, so that it is gone before its directory is removed.
async fn give_up(process: Option<Process>) {
    if let Some(mut process) = process {
        process.kill();
        process.exit_report().await;
    }
}

fn activate_all(
    launcher: &Launcher,
    ready: Vec<ReadyWorker>,
    loading: LoadingWorkers,
) -> JoinSet<()> {
    let mut slots = JoinSet::new();
    for ready in ready {
        let worker = launcher.activate(ready);
        slots.spawn(slot::keep(launcher.clone(), Some(worker)));
    }
    if !loading.is_empty() {
        slots.spawn(activate_rest(launcher.clone(), loading));
    }
    slots
}

/// Activates each worker when it has loaded, or has another one started in its place.
async fn activate_rest(launcher: Launcher, mut loading: LoadingWorkers) {
    let mut slots = JoinSet::new();
    loop {
        let worker = tokio::select! {
            worker = loaded(&mut loading) => worker,
            () = Order::drain(launcher.orders.clone()) => None,
        };
        let worker = match worker {
            Some(Ok(ready)) => Some(launcher.activate(ready)),
            Some(Err(error)) => {
                tracing::error!("a worker could not be started: {error}");
                None
            }
            None => break,
        };
        slots.spawn(slot::keep(launcher.clone(), worker));
    }
    loading.shutdown().await;
    slots.join_all().await;
}

async fn start_zygote(
    settings: &Settings,
    directory: &Path,
) -> Result<(Zygote, Process), StartError> {
    check_application(&settings.application)?;
    let (mut process, channel) = Process::start(settings, directory)?;
    match first_word(settings, channel).await? {
        FirstWord::Up(zygote) => Ok((zygote, process)),
        FirstWord::Failed(message) => Err(refused(settings, message)),
        FirstWord::Gone => {
            let (status, said) = process.exit_report().await;
            Err(ended(settings, status, said))
        }
    }
}

/// Returns the zygote on a channel, if it is up.
pub(super) async fn attach(settings: &Settings, channel: UnixStream) -> Result<Zygote, StartError> {
    match first_word(settings, channel).await? {
        FirstWord::Up(zygote) => Ok(zygote),
        FirstWord::Failed(message) => Err(refused(settings, message)),
        FirstWord::Gone => Err(ended(settings, None, String::new())),
    }
}

fn refused(settings: &Settings, message: String) -> StartError {
    StartError::Load {
        application: settings.name(),
        message,
    }
}

fn ended(settings: &Settings, status: Option<ExitStatus>, said: String) -> StartError {
    StartError::Ended {
        application: settings.name(),
        process: PROCESS,
        status: EndStatus(status),
        said,
    }
}

async fn first_word(settings: &Settings, channel: UnixStream) -> Result<FirstWord, StartError> {
    let limit = settings.limits.start_timeout;
    let word = timeout(limit, Loading::new(channel).first_word()).await;
    let word = word.map_err(|_| StartError::Timeout {
        application: settings.name(),
        process: PROCESS,
        limit,
    })?;
    word.map_err(|source| StartError::Channel {
        application: settings.name(),
        process: PROCESS,
        source,
    })
}

/// Checks that the application can be read. Perl would say so too, but after its own start, and in
/// other words.
fn check_application(path: &Path) -> Result<(), StartError> {
    let failed = |source| StartError::Application {
        path: path.to_path_buf(),
        source,
    };
    let metadata = std::fs::File::open(path).and_then(|file| file.metadata());
    if metadata.map_err(failed)?.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    Ok(())
}
