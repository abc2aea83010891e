//! Tasks of a loop.

use std::pin::Pin;

use tokio::task::{JoinHandle, spawn_local};

/// Spawns a task on the calling thread's runtime, as [`spawn_local`] does. The runtime's code for
/// tasks is compiled for this one type of future, and not again for each of them and for each
/// application. The price is an allocation, so requests of HTTP/1 and HTTP/2 are not spawned so.
pub(crate) fn spawn(future: impl Future<Output = ()> + 'static) -> JoinHandle<()> {
    spawn_boxed(Box::pin(future))
}

fn spawn_boxed(future: Pin<Box<dyn Future<Output = ()>>>) -> JoinHandle<()> {
    spawn_local(future)
}
