//! Stages by themselves, without a server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ending;
mod fairness;
mod overload;
mod running;

use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use greenroom_stage::{JoinHandle, Priority, Stage, StageBuilder};
use tokio::sync::oneshot;

/// A stage of one thread, so that the order of its work is known.
fn one_thread() -> Stage {
    builder()
        .threads(1..=1)
        .blocking_threads_max(1)
        .build()
        .unwrap()
}

/// The names of work, in the order in which it ran.
#[derive(Default)]
struct Order(Arc<Mutex<Vec<&'static str>>>);

impl Order {
    /// Returns work that notes this name.
    fn note(&self, name: &'static str) -> impl FnOnce() + Send + 'static {
        let names = Arc::clone(&self.0);
        move || names.lock().unwrap().push(name)
    }

    fn names(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

/// Begins work that waits for the sender, and then finishes so.
async fn begin(
    stage: &Stage,
    priority: Priority,
    finish: impl FnOnce() + Send + 'static,
) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (wake, woken) = oneshot::channel();
    let (begun, has_begun) = oneshot::channel();
    let waiting = stage.spawn_as(priority, async move {
        begun.send(()).unwrap();
        woken.await.unwrap();
        finish();
    });
    has_begun.await.unwrap();
    (wake, waiting)
}

fn compute(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Occupies the stage's only thread until the sender is dropped.
async fn occupy(stage: &Stage) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (begun, has_begun) = oneshot::channel();
    let occupying = stage.run(move || {
        begun.send(()).unwrap();
        released.recv().unwrap_err();
    });
    tokio::spawn(occupying);
    has_begun.await.unwrap();
    release
}

/// Machines under load are slow; no test depends on `queue_wait_max` unless it sets it.
fn builder() -> StageBuilder {
    Stage::builder("test").queue_wait_max(Duration::from_mins(10))
}

/// Fails a test that hangs.
async fn within<F: Future>(test: F) -> F::Output {
    tokio::time::timeout(Duration::from_mins(1), test)
        .await
        .expect("the test hangs")
}
