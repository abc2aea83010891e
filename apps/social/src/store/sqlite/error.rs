use std::path::PathBuf;
use std::sync::Arc;

use greenroom::StageError;
use rusqlite::ErrorCode;

use crate::store::StoreError;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        if is_for_now(&error) {
            Self::unavailable(error)
        } else {
            Self::broken(error)
        }
    }
}

/// True if the disk or another process is at fault, so that a retry may succeed.
fn is_for_now(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::OutOfMemory
                | ErrorCode::ReadOnly
                | ErrorCode::SystemIoFailure
        )
    )
}

/// The reason for which none of a batch was stored: the same for all its callers.
#[derive(Clone, Debug, thiserror::Error)]
#[error("nothing was stored")]
pub(super) struct NotStored(#[source] Arc<StoreError>);

impl NotStored {
    pub(super) fn because_of(error: StoreError) -> Self {
        Self(Arc::new(error))
    }
}

impl From<NotStored> for StoreError {
    fn from(error: NotStored) -> Self {
        match *error.0 {
            Self::Unavailable(_) => Self::unavailable(error),
            Self::Conflict(_) | Self::Broken(_) => Self::broken(error),
        }
    }
}

/// The reason for which a write was not even begun.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum NotBegun {
    #[error("nothing was stored: too many writes wait already")]
    QueueFull,
    #[error("whether it was stored is not known: the thread that writes has ended")]
    WriterEnded,
}

pub(super) fn of_stage(error: StageError) -> StoreError {
    match error {
        StageError::Rejected(rejected) => StoreError::unavailable(rejected),
        StageError::Panicked(panicked) => StoreError::broken(panicked),
    }
}

/// The reason for which a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("{} is open in another process", .0.display())]
    InUse(PathBuf),
    #[error("{} is a database of another program", .0.display())]
    Foreign(PathBuf),
    #[error("{} was made by a newer version of this program", .0.display())]
    Newer(PathBuf),
    #[error("{} is no SQLite database", .0.display())]
    NoDatabase(PathBuf),
    #[error("{} cannot be opened", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} cannot be opened", path.display())]
    Sqlite {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error("{} cannot be brought up to date", path.display())]
    Migration {
        path: PathBuf,
        source: rusqlite_migration::Error,
    },
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        let is_for_now = match &error {
            OpenError::InUse(_) | OpenError::Io { .. } => true,
            OpenError::Sqlite { source, .. } => is_for_now(source),
            _ => false,
        };
        if is_for_now {
            Self::unavailable(error)
        } else {
            Self::broken(error)
        }
    }
}
