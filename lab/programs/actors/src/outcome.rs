//! The outcome of a program: a line of JSON.

use serde::Serialize;

/// The outcome of a case.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// It was measured.
    Measured(Sample),
    /// It was not measured, for this reason.
    Missing {
        /// The reason.
        missing: String,
    },
}

/// One process' measurement. Times are in nanoseconds for each operation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Messages, hops, questions, round trips, actors or deliveries.
    pub operations: u64,
    /// Those that came before the clock ran, too.
    pub operations_with_warm_up: u64,
    /// Wall clock; for ping-pong the workers' time, less that of the actors that compute.
    pub nanoseconds: f64,
    /// CPU time of the whole process, where it is known.
    pub cpu_nanoseconds: Option<f64>,
    /// Time in which it had no core, as a share of the time on one, where it is known.
    pub waited: Option<f64>,
    /// Allocations for each operation, where they were counted.
    pub allocations: Option<f64>,
    /// Memory of an idle actor over its state and the reference to it.
    pub bytes: Option<f64>,
}

impl Outcome {
    /// Creates the outcome of a library that cannot do it.
    pub fn missing(why: impl Into<String>) -> Self {
        Self::Missing {
            missing: why.into(),
        }
    }
}
