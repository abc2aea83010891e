//! Several servers under the same load, one at a time, round by round.
//!
//! Each round starts every server once, and the first one a second time as a control: the
//! difference between the two runs of the same server is noise. Every second round goes backwards,
//! so that a machine that becomes slower or faster over time treats all alike. Ratios are taken
//! within a round, whose two runs are minutes apart at most.
//!
//! A server under test runs in a process group of its own and is ended with it in every case.

mod contender;
mod cores;
mod outcome;
mod output;
mod plan;
mod response;
mod rounds;
mod sample;
mod server;
mod statistics;
mod summary;
#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

pub use contender::{Contender, ContenderError};
pub use cores::{Cores, CoresError, Pinned};
pub use outcome::{Outcome, Series};
pub use plan::{Check, Comparison};
pub use rounds::run;
pub use sample::{Metric, Sample};
pub use server::{Launch, Server};
pub use statistics::{Difference, Ratio, median};
pub use summary::{MetricSummary, SeriesSummary, Summary};
pub use text::write_text;

use crate::run::{Progress, RunError};

/// A step of a comparison, for progress reports.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A server is about to be started.
    Begins(Turn<'a>),
    /// An interval of its run is over.
    Progress(Turn<'a>, &'a Progress<'a>),
    /// Its run is over.
    Ended(Turn<'a>, &'a Sample),
}

/// A run of one server within a round.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The contender's name; of the control with `(again)`.
    pub name: &'a str,
    /// Number of the round, from 1.
    pub round: u32,
    /// Number of rounds.
    pub rounds: u32,
}

/// The error of a comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The comparison contradicts itself.
    #[error("{0}")]
    Plan(String),
    /// Cores that cannot be used.
    #[error(transparent)]
    Cores(#[from] CoresError),
    /// A command cannot be started.
    #[error("{name}: cannot start {program:?}: {source}")]
    Start {
        /// The contender.
        name: String,
        /// The program.
        program: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// Something else accepts connections at its URL.
    #[error("{name}: something accepts connections at {url} before this server was started")]
    Occupied {
        /// The contender.
        name: String,
        /// Its URL.
        url: String,
    },
    /// A server ended by itself; its command must stay in the foreground.
    #[error("{name}: the server ended with {status} {when}{}", output::quoted(.output))]
    Ended {
        /// The contender.
        name: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The moment: before it accepted connections, or under load.
        when: &'static str,
        /// The end of its output.
        output: String,
    },
    /// A server does not accept connections in time.
    #[error(
        "{name}: nothing accepts connections at {url} after {timeout:?}{}",
        output::quoted(.output)
    )]
    Silent {
        /// The contender.
        name: String,
        /// Its URL.
        url: String,
        /// The time that it had.
        timeout: Duration,
        /// The end of its output.
        output: String,
    },
    /// A server accepts connections, but responds to no request.
    #[error("{name}: no request got a response: {reason}{}", output::quoted(.output))]
    NoResponse {
        /// The contender.
        name: String,
        /// The outcome of the requests.
        reason: String,
        /// The end of the server's output.
        output: String,
    },
    /// Two first responses differ.
    #[error("the first responses of {one} and {other} differ: {difference}")]
    Differs {
        /// The server whose response came first.
        one: String,
        /// The server whose response differs.
        other: String,
        /// The difference.
        difference: String,
    },
    /// A run could not begin.
    #[error("{name}: {source}")]
    Run {
        /// The contender.
        name: String,
        /// The run's error.
        source: RunError,
    },
    /// The comparison was ended before one round was complete.
    #[error("interrupted before the first round was complete")]
    Interrupted,
}
