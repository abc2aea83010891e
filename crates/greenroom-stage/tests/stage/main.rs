//! Stages by themselves, without a server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ending;
mod overload;
mod running;

use std::time::Duration;

use greenroom_stage::{Stage, StageBuilder};

/// A stage of one thread, so that the order of its work is known.
fn one_thread() -> Stage {
    builder()
        .threads(1..=1)
        .blocking_threads_max(1)
        .build()
        .unwrap()
}

/// Machines under load are slow; nothing here is about `queue_wait_max` unless it says so.
fn builder() -> StageBuilder {
    Stage::builder("test").queue_wait_max(Duration::from_mins(10))
}

/// Fails a test that hangs.
async fn within<F: Future>(test: F) -> F::Output {
    tokio::time::timeout(Duration::from_mins(1), test)
        .await
        .expect("the test hangs")
}
