use std::io;
use std::path::{Path, PathBuf};

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
    /// This system trusts no authorities, and no file of some was named. Why they cannot be read,
    /// if there are some.
    #[error(
        "this system has no certificates of authorities: name a file of some, or install \
         ca-certificates {0}"
    )]
    NoAuthorities(String),
    /// rustls does not take the settings.
    #[error(transparent)]
    Settings(#[from] rustls::Error),
    /// rustls cannot verify client certificates by these roots.
    #[error("client certificates cannot be verified: {0}")]
    Roots(#[from] rustls::server::VerifierBuilderError),
}

impl TlsError {
    /// Returns the file that is to blame, if one is.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Read { file, .. } | Self::File { file, .. } => Some(file),
            _ => None,
        }
    }
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
