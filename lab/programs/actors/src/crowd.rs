//! Many actors: the cost of starting one, and the memory of one that has nothing to do.

use procfs::process::Process;

use crate::options::Options;
use crate::outcome::{Outcome, Sample};
use crate::stopwatch::Stopwatch;

/// The number of actors that are started at once, before the task that starts them waits until all
/// have begun.
const CHUNK: usize = 1_000;
const STATE_BYTES: f64 = 8.0;

impl Options {
    /// Starts the actors, each with a state of 8 bytes. `settle` returns when the actor and all
    /// that were started before it have begun.
    ///
    /// # Errors
    /// If the kernel does not report the CPU time or the memory.
    pub async fn crowd<R>(
        &self,
        mut spawn: impl AsyncFnMut() -> R,
        mut settle: impl AsyncFnMut(&R),
    ) -> anyhow::Result<Outcome> {
        let count = usize::try_from(self.actors)?;
        let mut actors = Vec::with_capacity(count);
        let before = resident_bytes()?;
        let stopwatch = Stopwatch::start()?;
        while actors.len() < count {
            for _ in 0..CHUNK.min(count - actors.len()) {
                actors.push(spawn().await);
            }
            if let Some(last) = actors.last() {
                settle(last).await;
            }
        }
        let sample = stopwatch.stop(u64::from(self.actors))?;
        let bytes = self.bytes_each(resident_bytes()?.saturating_sub(before));
        // To drop them would stop them all.
        std::mem::forget(actors);
        Ok(Outcome::Measured(Sample {
            bytes: Some(bytes - size_of_f64::<R>() - STATE_BYTES),
            ..sample
        }))
    }

    #[expect(clippy::cast_precision_loss, reason = "gigabytes at most")]
    fn bytes_each(&self, grown: u64) -> f64 {
        grown as f64 / f64::from(self.actors)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a reference has some bytes")]
fn size_of_f64<T>() -> f64 {
    size_of::<T>() as f64
}

fn resident_bytes() -> anyhow::Result<u64> {
    let pages = Process::myself()?.statm()?.resident;
    Ok(pages * procfs::page_size())
}
