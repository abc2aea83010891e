//! Storage of entities' states, with adaptors.

mod jet_stream;
mod memory;

pub(crate) use jet_stream::JetStreamStorage;
pub use memory::MemoryStorage;

use std::pin::Pin;

use bytes::Bytes;
use greenroom_actor::BoxError;
use thiserror::Error;

use super::Key;

/// The future of an operation of a [`Storage`].
pub type StorageFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StorageError>> + Send + 'a>>;

/// A store of entities' states that heeds fences.
///
/// Each record has a fence. Both operations look at it and write it in *one* atomic step:
///
/// - [`load`](Self::load) fails if the record's fence is larger than that of the caller, and
///   otherwise sets it to the caller's, also if there was no record before;
/// - [`save`](Self::save) fails if the record's fence is larger than that of the caller.
///
/// So no activation overwrites what a later one has read. In SQL, with a table
/// `entities (name, fence, content)`:
///
/// ```sql
/// -- load; no row comes back: Fenced
/// insert into entities (name, fence) values ($1, $2)
///     on conflict (name) do update set fence = $2 where entities.fence <= $2
///     returning content;
/// -- save; no row was changed: Fenced
/// update entities set fence = $2, content = $3 where name = $1 and fence <= $2;
/// ```
///
/// The content holds the state and the ids of the durable messages that made it; it is opaque.
pub trait Storage: Send + Sync + 'static {
    /// Writes the fence, and returns the content that was saved last.
    fn load<'a>(&'a self, key: &'a Key, fence: u64) -> StorageFuture<'a, Loaded>;

    /// Saves the content. `version` is what [`load`](Self::load) or the last save of the same
    /// activation returned; the new version is returned. There is one save of an activation at a
    /// time, and none after one that failed.
    fn save<'a>(
        &'a self,
        key: &'a Key,
        fence: u64,
        version: u64,
        content: Bytes,
    ) -> StorageFuture<'a, u64>;
}

/// The content of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The content that was saved last; `None` if none was saved.
    pub content: Option<Bytes>,
    /// A number with which the storage knows the record again at the next save, as it likes. 0 for
    /// a storage that needs none.
    pub version: u64,
}

/// The reason for which a state was not loaded or saved.
#[derive(Debug, Error)]
pub enum StorageError {
    /// A later activation of the entity has written.
    #[error("a later activation of the entity has written to the storage")]
    Fenced,
    /// The content is larger than the storage takes.
    #[error("the content has {bytes} bytes, and the storage takes {bytes_max}")]
    TooLarge {
        /// The size of the content.
        bytes: usize,
        /// The largest that the storage takes.
        bytes_max: usize,
    },
    /// The storage failed. Whether the content was saved is not known.
    #[error("the storage failed: {0}")]
    Failed(#[source] BoxError),
}
