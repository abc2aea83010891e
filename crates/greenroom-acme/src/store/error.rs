use std::fmt::Display;
use std::io;
use std::path::PathBuf;

/// An error of the directory in which the account and the certificates are kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process, or another [`Acme`](crate::Acme) of this one, uses the directory.
    #[error(
        "{} is in use{}; a directory of certificates belongs to one process",
        directory.display(),
        holder.map(|process| format!(" by process {process}")).unwrap_or_default()
    )]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// The process that has it, if it has said so.
        holder: Option<u32>,
    },
    /// A file that was not written by this crate, or was changed since.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        reason: String,
    },
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl StoreError {
    pub(super) fn damaged(path: PathBuf, reason: &impl Display) -> Self {
        Self::Damaged {
            path,
            reason: reason.to_string(),
        }
    }
}
