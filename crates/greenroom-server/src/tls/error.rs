use std::io;
use std::path::PathBuf;

/// The reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}:{line}: {fault}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The line at which the faulty part of it begins, from 1 on.
        line: usize,
        /// The fault, and the text that is expected.
        fault: String,
    },
    /// There is no certificate: neither a file nor a resolver was named.
    #[error("TLS needs a certificate: name the files of one and of its key, or a resolver")]
    NoCertificate,
    /// There is no cryptography: none was named, and no feature brings one.
    #[error("TLS needs a provider of cryptography: name one, or enable a feature that brings it")]
    NoProvider,
    /// rustls does not take the settings.
    #[error(transparent)]
    Settings(#[from] rustls::Error),
    /// rustls cannot verify client certificates by these roots.
    #[error("client certificates cannot be verified: {0}")]
    Roots(#[from] rustls::server::VerifierBuilderError),
}

/// The reason why a TLS connection ends before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Protocol(#[from] rustls::Error),
    #[error("the keys are used up")]
    Exhausted,
    #[error("there is room for fewer than {0} bytes")]
    TooLittleRoom(usize),
    #[error("too many records without content")]
    Empty,
    #[error("rustls came to a state that it should not come to")]
    Unexpected,
}

impl From<Broken> for io::Error {
    fn from(broken: Broken) -> Self {
        Self::new(io::ErrorKind::InvalidData, broken)
    }
}
