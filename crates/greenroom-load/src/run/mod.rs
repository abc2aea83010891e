//! The execution of a plan.

mod collect;
mod endpoint;
mod measurement;
mod pacer;
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
pub(crate) use pacer::{Due, Pacer};
pub(crate) use routes::Routes;
pub(crate) use socket::socket;
pub(crate) use turns::{PathTurns, Turns};
pub(crate) use worker::{Clock, Ending, Share};

use crate::record::Tally;

/// A flag that ends a run early: nothing more is sent, nothing more is waited for, and the
/// measurements so far are reported.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Returns the flag itself, for a signal handler that sets it.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if the run was ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The progress of a stream, reported once in an interval.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Number of the stream in its plan, from 0.
    pub stream: usize,
    /// Time since the run began, at the end of the interval.
    pub elapsed: Duration,
    /// Length of the interval.
    pub length: Duration,
    /// The measurements of the interval alone.
    pub interval: &'a Tally,
    /// Requests sent since the run began.
    pub sent: u64,
    /// Requests that got a response or failed since the run began.
    pub ended: u64,
}

/// The error of a run that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A name has no address.
    #[error("cannot resolve {host:?}: {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's error.
        reason: String,
    },
    /// The plan contradicts itself.
    #[error("{0}")]
    Plan(String),
    /// Certificates or keys cannot be used.
    #[error("{0}")]
    Tls(String),
    /// The kernel denies something that every run needs.
    #[error("{what}: {source}")]
    System {
        /// The attempt that failed.
        what: &'static str,
        /// The kernel's error.
        source: std::io::Error,
    },
}
