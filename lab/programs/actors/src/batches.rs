//! A case that repeats a batch of messages.

use crate::options::Options;
use crate::outcome::{Outcome, Sample};
use crate::stopwatch::Stopwatch;

impl Options {
    /// Repeats `batch`, of this many operations each, until the time is over; before that, to warm
    /// up.
    ///
    /// # Errors
    /// If the kernel does not report the CPU time.
    pub async fn batches(
        &self,
        operations: u64,
        mut batch: impl AsyncFnMut(),
    ) -> anyhow::Result<Outcome> {
        let mut warm_up = 0;
        let begin = Stopwatch::start()?;
        while begin.elapsed() < self.warm_up() {
            batch().await;
            warm_up += operations;
        }
        let mut done = 0;
        let stopwatch = Stopwatch::start()?;
        while stopwatch.elapsed() < self.time() {
            batch().await;
            done += operations;
        }
        let sample = stopwatch.stop(done)?;
        Ok(Outcome::Measured(Sample {
            operations_with_warm_up: warm_up + done,
            ..sample
        }))
    }
}
