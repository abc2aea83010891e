use std::io;

use crate::{Address, AddressError, SettingError};

/// An error of a server that does not start, or stopped serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address could not be listened on: taken, not ours, or not permitted.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// An address could not be bound for HTTP/3, which comes by UDP.
    #[cfg(feature = "http3")]
    #[error("cannot bind {address} for UDP, by which HTTP/3 comes: {source}")]
    BindUdp {
        /// The address.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// HTTP/3 is to be served, and there is no TLS at any address.
    #[cfg(feature = "http3")]
    #[error("HTTP/3 needs TLS: a certificate, and a TCP address that the server itself binds")]
    Http3WithoutTls,
    /// The thread that serves HTTP/3 could not be started.
    #[cfg(feature = "http3")]
    #[error("cannot start the thread of HTTP/3: {0}")]
    StartHttp3(io::Error),
    /// The provider of the cryptography has nothing for HTTP/3.
    #[cfg(feature = "http3")]
    #[error("the TLS of this server cannot serve HTTP/3: {0}")]
    Http3(#[from] crate::TlsError),
    /// A text is no address to listen on.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A limit is not allowed.
    #[error(transparent)]
    Limit(#[from] SettingError),
    /// No address to listen on was named.
    #[error("no address to listen on: name at least one")]
    NoAddress,
    /// SIGTERM and SIGINT cannot be caught.
    #[error("cannot catch signals: {0}")]
    Signals(io::Error),
    /// The version before does not hand over its sockets as it should.
    #[error("cannot take over from the version before: {0}")]
    Upgrade(io::Error),
    /// A loop's thread or runtime could not be made.
    #[error("cannot start loop {index}: {source}")]
    Start {
        /// The loop's index, counted from 0.
        index: usize,
        /// The system's error.
        source: io::Error,
    },
    /// A loop ended by a panic outside any handler: a fault of Greenroom's own.
    #[error("loop {index} ended by a panic outside any handler")]
    LoopPanicked {
        /// The loop's index, counted from 0.
        index: usize,
    },
}

impl From<Error> for io::Error {
    /// Keeps the kind of what the system said, and the whole error as its inner one.
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Bind { source, .. }
            | Error::Start { source, .. }
            | Error::Signals(source)
            | Error::Upgrade(source) => source.kind(),
            #[cfg(feature = "http3")]
            Error::BindUdp { source, .. } | Error::StartHttp3(source) => source.kind(),
            #[cfg(feature = "http3")]
            Error::Http3WithoutTls | Error::Http3(_) => io::ErrorKind::InvalidInput,
            Error::Address(_) | Error::Limit(_) | Error::NoAddress => io::ErrorKind::InvalidInput,
            Error::LoopPanicked { .. } => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
