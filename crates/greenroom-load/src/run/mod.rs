//! Carrying out a plan.

mod collect;
mod endpoint;
mod measurement;
mod resolve;
mod routes;
mod socket;
mod turns;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use collect::run;
pub use measurement::{Measurement, StreamMeasurement};

pub(crate) use endpoint::{Address, Endpoint};
pub(crate) use routes::Routes;
pub(crate) use socket::socket;
pub(crate) use turns::{PathTurns, Turns};
pub(crate) use worker::{Clock, Ending, Share};

use crate::record::Tally;

/// Ends a run early: nothing more is sent, nothing more is waited for, and what there is is reported.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// The flag itself, for a signal handler that sets it.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is told of a stream once in an interval.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Number of the stream in its plan, from 0.
    pub stream: usize,
    /// Since the run began, at the end of the interval.
    pub elapsed: Duration,
    /// How long the interval was.
    pub length: Duration,
    /// The interval alone.
    pub interval: &'a Tally,
    /// Requests sent since the run began.
    pub sent: u64,
    /// Requests answered or failed since the run began.
    pub ended: u64,
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A name has no address.
    #[error("cannot resolve {host:?}: {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// The plan contradicts itself.
    #[error("{0}")]
    Plan(String),
    /// Certificates or keys cannot be used.
    #[error("{0}")]
    Tls(String),
    /// The kernel refuses what every run needs.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
}
