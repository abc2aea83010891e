use std::error::Error;

/// An error of the storage, by whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It contradicts what is stored: a name is taken, an album is gone. A retry does not help.
    #[error("{0}")]
    Conflict(&'static str),
    /// The storage cannot be reached, is overloaded or full, for now. It is unknown if a change was
    /// made, unless the source says so. A later retry may help.
    #[error("the storage is not available")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// The storage contains or returns invalid data: our fault.
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

/// The result of a [`Store`](super::Store)'s methods.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
