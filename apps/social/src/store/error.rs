use std::error::Error;

/// What storage did not do, and whose fault that is.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It contradicts what is stored: a name is taken, an album is gone. To try again is of no use.
    #[error("{0}")]
    Conflict(&'static str),
    /// The storage cannot be reached, is too busy or full, for now. Whether a change was made is not known, unless
    /// the source says so. To try again later may help.
    #[error("the storage is not available")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// The storage holds or says what it must not: our fault.
    #[error("the storage is broken")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

impl StoreError {
    /// See [`StoreError::Unavailable`].
    pub fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into())
    }

    /// See [`StoreError::Broken`].
    pub fn broken(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Broken(source.into())
    }
}

/// Of a [`Store`](super::Store)'s methods.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
