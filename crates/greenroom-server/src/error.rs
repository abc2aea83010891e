use std::io;

use crate::Address;

/// Why a server does not start, or stopped serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address could not be listened on: taken, not ours, or not permitted.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// No address to listen on was named.
    #[error("no address to listen on: name at least one")]
    NoAddress,
    /// A loop's thread or runtime could not be made.
    #[error("cannot start loop {index}: {source}")]
    Start {
        /// Which loop, counted from 0.
        index: usize,
        /// What the system said.
        source: io::Error,
    },
    /// A loop ended by a panic outside any handler: a fault of Greenroom's own.
    #[error("loop {index} ended by a panic outside any handler")]
    LoopPanicked {
        /// Which loop, counted from 0.
        index: usize,
    },
}

impl From<Error> for io::Error {
    /// Keeps the kind of what the system said, and the whole error as its inner one.
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Bind { source, .. } | Error::Start { source, .. } => source.kind(),
            Error::NoAddress => io::ErrorKind::InvalidInput,
            Error::LoopPanicked { .. } => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
