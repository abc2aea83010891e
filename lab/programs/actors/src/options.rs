//! The options of a program.

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use tokio::runtime::{Builder, Runtime};

use crate::case::Case;
use crate::outcome::Outcome;

const WARM_UP_DIVISOR: u32 = 2;

/// A case, and the size of its measurement.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The case to measure
    #[arg(long, value_enum)]
    pub case: Case,
    /// Milliseconds of the measurement; half as long before that, to warm up
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    milliseconds: u64,
    /// Actors that the cases spawn and idle start
    #[arg(
        long,
        default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000)
    )]
    pub(crate) actors: u32,
}

impl Options {
    /// Returns the time of the measurement.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }

    /// Returns the time of the warm-up.
    #[must_use]
    pub fn warm_up(&self) -> Duration {
        self.time() / WARM_UP_DIVISOR
    }

    /// Creates a runtime with the case's workers.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn runtime(&self) -> io::Result<Runtime> {
        let workers = self.case.workers();
        let mut builder = if workers == 1 {
            Builder::new_current_thread()
        } else {
            Builder::new_multi_thread()
        };
        builder.worker_threads(workers).enable_all().build()
    }
}

/// Prints the outcome as a line of JSON.
///
/// # Errors
/// If standard output is closed.
pub fn print(outcome: &Outcome) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string(outcome)?)?;
    Ok(())
}

/// Runs a measurement on the workers of its case.
///
/// # Errors
/// Those of the measurement, or if the system gives no threads.
pub fn on_tokio(
    options: &Options,
    measure: impl AsyncFnOnce(&Options) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let runtime = options.runtime()?;
    let outcome = runtime.block_on(measure(options));
    // A million actors take their time to stop, and the process ends anyhow.
    std::mem::forget(runtime);
    outcome
}
