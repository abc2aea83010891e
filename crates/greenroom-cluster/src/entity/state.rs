use std::any::TypeId;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cell::Cell;
use crate::codec;
use crate::names::EntityId;
use crate::remote::RemoteActor;

/// An actor with an identity: wherever it is asked for, there is one activation of it in the
/// cluster, made with its first message and passivated when it is idle.
///
/// It handles one message from other processes at a time, to its reply. When a handler panics, or
/// drops its reply, the activation ends; the next message makes a new one, of the state that was
/// saved last.
///
/// ```
/// use greenroom_actor::{Actor, ActorSystem, messages};
/// use greenroom_cluster::{Activation, Cluster, Entity, StateError, Stored};
///
/// struct Album {
///     pictures: Stored<Vec<String>>,
/// }
///
/// impl Actor for Album {}
///
/// impl Entity for Album {
///     type State = Vec<String>; // whatever serde can write; `()` for none
/// }
///
/// #[messages(remote = "album.v1")]
/// impl Album {
///     fn new(activation: Activation<Vec<String>>) -> Self {
///         let pictures = activation.state;
///         Self { pictures }
///     }
///
///     #[message]
///     async fn add(&mut self, picture: String) -> Result<usize, StateError> {
///         self.pictures.update(|pictures| pictures.push(picture)).await?;
///         Ok(self.pictures.len())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::local();
/// let system = ActorSystem::new()?;
/// let hosting = cluster.host(&system, Album::new)?; // on any number of nodes
///
/// let album = cluster.entity::<Album>("42")?; // on any node
/// assert_eq!(album.add("a.jpg".into()).ask().await??, 1);
///
/// hosting.leave(std::time::Duration::from_secs(30)).await; // its entities go on elsewhere
/// # Ok(())
/// # }
/// ```
pub trait Entity: RemoteActor {
    /// The state that is kept in the [`Storage`](super::Storage), `()` for none. An entity that was
    /// never saved begins with the default.
    type State: Serialize + DeserializeOwned + Default + Send + 'static;
}

/// The beginning of an entity's activation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Activation<T> {
    /// The entity.
    pub id: EntityId,
    /// The number of this activation, larger than that of every one before it. What it writes to a
    /// store of its own should carry it, and the store refuse what carries a smaller one than it
    /// has seen.
    pub fence: u64,
    /// The state.
    pub state: Stored<T>,
}

/// The state of an entity, which is kept in the [`Storage`](super::Storage).
///
/// ```
/// # use greenroom_cluster::{StateError, Stored};
/// # #[derive(Default, serde::Serialize)]
/// # struct Album { pictures: Vec<String> }
/// # struct Keeper { state: Stored<Album> }
/// # impl Keeper {
/// async fn add(&mut self, picture: String) -> Result<usize, StateError> {
///     self.state.update(|album| album.pictures.push(picture)).await?;
///     Ok(self.state.pictures.len())
/// }
/// # }
/// ```
pub struct Stored<T> {
    value: T,
    cell: Arc<Cell>,
}

/// The reason for which a state was not saved. The activation has ended: what it changed since it
/// saved last is gone, and the next message finds what is stored.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum StateError {
    /// A later activation of the entity has written.
    #[error("a later activation of the entity has written to the storage")]
    Fenced,
    /// The state is too large.
    #[error("the state has {bytes} bytes, and may have {bytes_max}")]
    TooLarge {
        /// The size of the state; where the storage refused it, of the ids that go with it, too.
        bytes: usize,
        /// The size that it may have.
        bytes_max: usize,
    },
    /// The state could not be encoded.
    #[error("the state cannot be encoded: {error}")]
    NotEncoded {
        /// The reason.
        error: String,
    },
    /// The storage failed. Whether the state was saved is not known.
    #[error("the state was not saved: {error}")]
    NotSaved {
        /// The reason.
        error: String,
    },
    /// The activation ended before: its node has lost its lease, or a save failed or was not waited
    /// for.
    #[error("the activation has ended")]
    Ended,
}

impl<T> Stored<T> {
    pub(super) fn new(value: T, cell: Arc<Cell>) -> Self {
        Self { value, cell }
    }

    /// Changes the state and saves it, and returns what the function returned.
    ///
    /// While a durable message is handled only the memory changes: the state is saved when the
    /// message has its reply, together with the message's id, and before it is acknowledged. So
    /// however often a handler updates, a durable message changes the state once or, if the handler
    /// does not come to its end, not at all. That holds for what other handlers update from when
    /// the message is in the mailbox, too, such as that of a timer.
    ///
    /// # Errors
    ///
    /// If it could not be saved; then the activation ends after this message. So it does if the
    /// future is dropped before it is ready.
    pub async fn update<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> Result<R, StateError>
    where
        T: Serialize,
    {
        self.cell.check()?;
        // Ends the activation if `change` panics and somebody catches it.
        let unsaved = self.cell.unsaved();
        let result = change(&mut self.value);
        let state = codec::encode(&self.value).map_err(|error| StateError::NotEncoded {
            error: error.to_string(),
        });
        unsaved.by(async { self.cell.save(state?).await }).await?;
        Ok(result)
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Stored<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// Returns `true` if entities with this state have one that is kept.
pub(super) fn is_kept<T: 'static>() -> bool {
    TypeId::of::<T>() != TypeId::of::<()>()
}
