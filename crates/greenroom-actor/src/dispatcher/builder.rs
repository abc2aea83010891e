//! Start of a dispatcher's workers.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_deque::Worker as Queue;
use greenroom_stage::{JoinHandle, Stage};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::task::unconstrained;

use super::core::Core;
use super::error::DispatcherError;
use super::settings::{Dispatcher, Place};
use super::watchdog;
use super::worker::{Order, Seeded, Worker};

/// The wait before a worker is submitted to an overloaded stage again.
const SUBMIT_EVERY: Duration = Duration::from_millis(100);

/// Starts a dispatcher. Of kinds that have one for each actor or runtime, it starts one.
pub(crate) fn start(name: &str, dispatcher: &Dispatcher) -> Result<Arc<Core>, DispatcherError> {
    let Dispatcher { place, throughput } = dispatcher;
    let make = |kind, workers| {
        let (core, workers) = make(name, kind, *throughput, workers, place)?;
        watchdog::watch(&core);
        Ok((core, workers))
    };
    let no_runtime = |_| DispatcherError::NoRuntime {
        name: name.to_owned(),
    };
    match place {
        Place::Tokio => {
            let Ok(runtime) = Handle::try_current() else {
                let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
                return start(name, &Dispatcher::pool(threads).throughput(*throughput));
            };
            let (core, workers) = make("tokio", runtime.metrics().num_workers())?;
            spawn_on(&runtime, workers);
            Ok(core)
        }
        Place::Pool { threads } => {
            let (core, workers) = make("pool", *threads)?;
            // After an error the threads that were started end.
            start_threads(name, workers).inspect_err(|_| core.close())?;
            Ok(core)
        }
        Place::Pinned => {
            let (core, workers) = make("pinned", 1)?;
            start_threads(name, workers).inspect_err(|_| core.close())?;
            Ok(core)
        }
        Place::Loop | Place::Seeded { .. } => {
            let runtime = Handle::try_current().map_err(no_runtime)?;
            let (core, workers) = make("loop", 1)?;
            spawn_on(&runtime, workers);
            Ok(core)
        }
        Place::Stage { stage, workers } => {
            let runtime = Handle::try_current().map_err(no_runtime)?;
            let (core, workers) = make("stage", *workers)?;
            spawn_on_stage(name, stage, &runtime, workers).inspect_err(|_| core.close())?;
            Ok(core)
        }
    }
}

fn make(
    name: &str,
    kind: &'static str,
    throughput: u32,
    workers: usize,
    place: &Place,
) -> Result<(Arc<Core>, Vec<Worker>), DispatcherError> {
    if !(1..=Dispatcher::WORKERS_MAX).contains(&workers) {
        return Err(DispatcherError::Workers {
            name: name.to_owned(),
            workers,
        });
    }
    let queues: Vec<_> = (0..workers).map(|_| Queue::new_fifo()).collect();
    let stealers = queues.iter().map(Queue::stealer).collect();
    let core = Arc::new(Core::new(name, kind, throughput, stealers));
    let order = || match place {
        Place::Seeded { seed } => Order::Seeded(Seeded::new(*seed)),
        _ => Order::Fifo,
    };
    let worker = |(number, queue)| Worker::new(Arc::clone(&core), number, queue, order());
    let workers = (0_u16..).zip(queues).map(worker).collect();
    Ok((core, workers))
}

/// Spawns the workers as detached tasks, which end with the runtime or with the actor system. A
/// worker yields of itself, so tokio need not make it: they are unconstrained.
fn spawn_on(runtime: &Handle, workers: Vec<Worker>) {
    for worker in workers {
        drop(runtime.spawn(unconstrained(worker)));
    }
}

fn start_threads(name: &str, workers: Vec<Worker>) -> Result<(), DispatcherError> {
    let failed = |source| DispatcherError::Thread {
        name: name.to_owned(),
        source,
    };
    for (number, worker) in workers.into_iter().enumerate() {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        std::thread::Builder::new()
            .name(format!("{name}-{number}"))
            .spawn(move || runtime.block_on(unconstrained(worker)))
            .map_err(failed)?;
    }
    Ok(())
}

fn spawn_on_stage(
    name: &str,
    stage: &Stage,
    runtime: &Handle,
    workers: Vec<Worker>,
) -> Result<(), DispatcherError> {
    for worker in workers {
        let worker = Arc::new(Mutex::new(Some(worker)));
        let submitted = stage.spawn(work(Arc::clone(&worker)));
        if let Some(source) = submitted.rejected() {
            return Err(DispatcherError::Stage {
                name: name.to_owned(),
                source,
            });
        }
        drop(runtime.spawn(keep_on_stage(stage.clone(), worker, submitted)));
    }
    Ok(())
}

/// Runs a worker, which is taken when its turn on the stage comes.
async fn work(worker: Arc<Mutex<Option<Worker>>>) {
    let worker = worker.lock().take();
    if let Some(worker) = worker {
        unconstrained(worker).await;
    }
}

/// Keeps the worker on the stage, which cancels work whose handle is dropped. It also drops work
/// whose first turn comes too late: the worker is left then, and is submitted again.
async fn keep_on_stage(
    stage: Stage,
    worker: Arc<Mutex<Option<Worker>>>,
    mut submitted: JoinHandle<()>,
) {
    while let Err(greenroom_stage::Error::Rejected(_)) = submitted.await {
        tokio::time::sleep(SUBMIT_EVERY).await;
        submitted = stage.spawn(work(Arc::clone(&worker)));
    }
}

/// A dispatcher whose workers the test polls, or drops.
#[cfg(test)]
pub(crate) fn unstarted(workers: usize) -> (Arc<Core>, Vec<impl Future<Output = ()> + Send>) {
    let place = Place::Pool { threads: workers };
    make("unstarted", "pool", 1, workers, &place).expect("it has workers")
}
