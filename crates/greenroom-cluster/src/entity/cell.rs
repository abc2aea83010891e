use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::content::{self, Applied};
use super::{Key, StateError, Storage, StorageError};

/// The storage of all entities of a host, and its limits.
pub(super) struct Keeper {
    pub(super) storage: Arc<dyn Storage>,
    /// The largest state, in bytes.
    pub(super) bytes_max: usize,
    /// The ids of durable messages that an entity keeps at most.
    pub(super) applied_max: usize,
    /// The time for which it keeps each at least.
    pub(super) kept_for: Duration,
}

/// The part of an activation that it shares with its host: its way to the storage, and its end.
pub(super) struct Cell {
    key: Key,
    fence: u64,
    keeper: Arc<Keeper>,
    state: Mutex<State>,
    /// Held during a write: one at a time.
    writing: tokio::sync::Mutex<()>,
}

struct State {
    /// The reason, once the activation has ended.
    end: Option<StateError>,
    version: u64,
    applied: Applied,
    /// The number of ids in the record, as it was loaded or saved last.
    ids_saved: usize,
    durable: Option<Box<Durable>>,
}

/// The durable message that is being handled.
struct Durable {
    /// Its name and its own id: unlike that of any other message to this entity.
    id: Box<str>,
    /// The state to be saved with the id.
    state: Option<Bytes>,
}

/// The outcome of a look at a durable message.
pub(super) enum Begun {
    /// It is to be handled.
    New,
    /// It was applied before.
    Applied,
    /// The entity keeps as many ids as it may, and one more after this time.
    Full(Duration),
}

impl Cell {
    pub(super) fn new(
        key: Key,
        fence: u64,
        keeper: Arc<Keeper>,
        version: u64,
        applied: Applied,
    ) -> Self {
        let state = State {
            end: None,
            version,
            ids_saved: applied.len(),
            applied,
            durable: None,
        };
        Self {
            key,
            fence,
            keeper,
            state: Mutex::new(state),
            writing: tokio::sync::Mutex::new(()),
        }
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    /// Returns the reason if the activation has ended.
    pub(super) fn end_reason(&self) -> Option<StateError> {
        self.state.lock().end.clone()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    pub(super) fn check(&self) -> Result<(), StateError> {
        self.state.lock().end.clone().map_or(Ok(()), Err)
    }

    /// Ends the activation: nothing is saved from now on, but for what is being saved already.
    pub(super) fn end(&self) {
        self.end_by(StateError::Ended);
    }

    /// Begins with the durable message of this name and id.
    pub(super) fn begin(&self, message: &str, id: &str) -> Begun {
        // No name of a message has a slash.
        let id = format!("{message}/{id}");
        let (mut state, now) = (self.state.lock(), Instant::now());
        if state.applied.contains(&id) {
            return Begun::Applied;
        }
        let Keeper {
            applied_max,
            kept_for,
            ..
        } = *self.keeper;
        state.applied.forget_old(0, kept_for, now);
        let wait = state.applied.wait(applied_max, kept_for, now);
        if !wait.is_zero() {
            return Begun::Full(wait);
        }
        state.durable = Some(Box::new(Durable {
            id: id.into(),
            state: None,
        }));
        Begun::New
    }

    /// Saves what the handler of a durable message changed, and the message's id if it was handled
    /// to its end. Does nothing after another message.
    pub(super) async fn finish(&self, is_handled: bool) -> Result<(), StateError> {
        if self.state.lock().durable.is_none() {
            return Ok(());
        }
        let _writing = self.writing.lock().await;
        // Taken in the turn of this write: from now on an update by another handler, such as that
        // of a timer, waits for this one and writes for itself.
        let durable = self.state.lock().durable.take();
        let Some(Durable { id, state }) = durable.map(|durable| *durable) else {
            return Ok(());
        };
        match state {
            Some(state) => {
                let id = is_handled.then_some(id);
                self.unsaved().by(self.write(state, id)).await
            }
            // The handler changed nothing. If it could not, and made a reply of that error, the
            // message must not be acknowledged.
            None => self.check(),
        }
    }

    /// Returns a guard that ends the activation unless the state is saved by it.
    pub(super) fn unsaved(&self) -> Unsaved<'_> {
        Unsaved {
            cell: self,
            is_saved: false,
        }
    }

    pub(super) async fn save(&self, state: Bytes) -> Result<(), StateError> {
        self.check_size(state.len())?;
        if self.defer(&state) {
            return Ok(());
        }
        let _writing = self.writing.lock().await;
        self.write(state, None).await
    }

    /// Leaves the state to [`finish`](Self::finish) if a durable message is being handled.
    fn defer(&self, saved: &Bytes) -> bool {
        let mut state = self.state.lock();
        let Some(durable) = &mut state.durable else {
            return false;
        };
        durable.state = Some(saved.clone());
        true
    }

    /// Writes to the storage, in the turn of the caller.
    async fn write(&self, state: Bytes, id: Option<Box<str>>) -> Result<(), StateError> {
        self.check()?;
        let (kept_for, one_more) = (self.keeper.kept_for, usize::from(id.is_some()));
        let (content, version) = {
            let mut of = self.state.lock();
            of.applied.forget_old(one_more, kept_for, Instant::now());
            let content = content::encode(&of.applied, id.as_deref(), &state);
            (content, of.version)
        };
        let saving = self
            .keeper
            .storage
            .save(&self.key, self.fence, version, content);
        let version = saving.await.map_err(StateError::from)?;
        let mut state = self.state.lock();
        state.version = version;
        if let Some(id) = id {
            state.applied.push(id, Instant::now());
        }
        state.ids_saved = state.applied.len();
        Ok(())
    }

    /// Returns the moment from which on [`tidy`](Self::tidy) can forget all ids that need not be
    /// kept; `None` if there are none.
    pub(super) fn tidy_at(&self) -> Option<Instant> {
        self.state.lock().applied.old_at(self.keeper.kept_for)
    }

    /// Forgets ids that are old in the record, too: once loaded again they would count as new. What
    /// fails is left to another time.
    pub(super) async fn tidy(&self) {
        let _writing = self.writing.lock().await;
        {
            let mut state = self.state.lock();
            let kept_for = self.keeper.kept_for;
            state.applied.forget_old(0, kept_for, Instant::now());
            if state.end.is_some() || state.ids_saved <= state.applied.len() {
                return;
            }
        }
        if let Err(error) = self.save_ids().await {
            tracing::info!(target: TARGET, key = %self.key, %error, "old ids stay in the record");
        }
    }

    /// Saves the ids, and the state as it is in the record, in the turn of the caller.
    async fn save_ids(&self) -> Result<(), StorageError> {
        let (storage, key) = (&self.keeper.storage, &self.key);
        let loaded = storage.load(key, self.fence).await?;
        let content = loaded.content.and_then(|content| {
            let (_, saved) = content::decode(content, Instant::now())?;
            Some(content::encode(&self.state.lock().applied, None, &saved))
        });
        let mut version = loaded.version;
        if let Some(content) = content {
            version = storage.save(key, self.fence, version, content).await?;
        }
        let mut state = self.state.lock();
        state.version = version;
        state.ids_saved = state.applied.len();
        Ok(())
    }

    fn check_size(&self, bytes: usize) -> Result<(), StateError> {
        let bytes_max = self.keeper.bytes_max;
        if bytes > bytes_max {
            return Err(StateError::TooLarge { bytes, bytes_max });
        }
        Ok(())
    }

    fn end_by(&self, reason: StateError) {
        self.state.lock().end.get_or_insert(reason);
    }
}

const TARGET: &str = "greenroom::cluster";

/// A change of the state that is not saved yet. Dropped, it ends the activation.
pub(super) struct Unsaved<'a> {
    cell: &'a Cell,
    is_saved: bool,
}

impl Unsaved<'_> {
    /// Ends the activation with the reason if the state was not saved.
    pub(super) async fn by(
        mut self,
        saving: impl Future<Output = Result<(), StateError>>,
    ) -> Result<(), StateError> {
        let saved = saving.await;
        match &saved {
            Ok(()) => self.is_saved = true,
            Err(error) => self.cell.end_by(error.clone()),
        }
        saved
    }
}

impl Drop for Unsaved<'_> {
    fn drop(&mut self) {
        if !self.is_saved {
            self.cell.end();
        }
    }
}

impl From<StorageError> for StateError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Fenced => Self::Fenced,
            StorageError::TooLarge { bytes, bytes_max } => Self::TooLarge { bytes, bytes_max },
            StorageError::Failed(error) => Self::NotSaved {
                error: error.to_string(),
            },
        }
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell")
            .field("key", &self.key)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}
