use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom::actor::{Actor, messages};
use greenroom::cluster::{Activation, Entity};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::Failure;
use crate::model::{Head, Id};
use crate::service::PAGE_MAX;
use crate::store::{self, Listed, PicturesOf, Store, StoreError};

/// Longest age of an album's pictures: a change that the entity was not told of shows by then.
const PICTURES_TTL: Duration = Duration::from_secs(10);
/// Longest age of counts; the feed delivers newer ones, because each count comes with its position
/// in the log.
const HEADS_TTL: Duration = Duration::from_secs(1);

/// The first page of an album, in memory; there is one in the cluster.
///
/// It reads while it handles a message, and handles one message at a time. So of many that ask for
/// a page one has it read, and nothing that was read before a change is there after it was told.
pub(crate) struct HotAlbum {
    id: Id,
    store: Arc<dyn Store>,
    listed: Option<Kept<Listed>>,
    heads: Option<Kept<HashMap<String, Head>>>,
}

/// A value, and when its reading began.
struct Kept<T> {
    value: T,
    since: Instant,
}

/// The first page of an album.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Shown {
    /// The pictures of the page, and one more if there is another page.
    pub(crate) listed: Listed,
    /// The ends of the pictures' topics.
    pub(crate) heads: HashMap<String, Head>,
}

/// The reason why an album could not be read, as it goes from process to process.
#[derive(Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unread {
    /// [`StoreError::Unavailable`].
    Unavailable,
    /// Any other error.
    Broken,
}

impl Actor for HotAlbum {}

impl Entity for HotAlbum {
    type State = ();
}

#[messages(remote = "album.v1")]
impl HotAlbum {
    pub(super) fn new(activation: &Activation<()>, store: &Arc<dyn Store>) -> Self {
        Self {
            // What is no identifier is no album's: a new one is none's either.
            id: activation.id.as_str().parse().unwrap_or_default(),
            store: Arc::clone(store),
            listed: None,
            heads: None,
        }
    }

    /// Returns the first page.
    #[message]
    pub(super) async fn show(&mut self, limit: u32) -> Result<Shown, Unread> {
        let (listed, heads) = self.read().await.map_err(Unread::of)?;
        let listed = listed.first(limit.min(PAGE_MAX) + 1);
        let head = |topic: String| Some((heads.get(&topic).copied()?, topic));
        let heads = listed.topics().into_iter().filter_map(head);
        let heads = heads.map(|(head, topic)| (topic, head)).collect();
        Ok(Shown { listed, heads })
    }

    /// Forgets what was read before a change.
    #[message]
    pub(super) fn forget(&mut self) {
        (self.listed, self.heads) = (None, None);
    }

    /// Returns what is in memory, after reading what is too old.
    async fn read(&mut self) -> store::Result<(&Listed, &HashMap<String, Head>)> {
        let listed = self.listed.take_if(|listed| listed.is_within(PICTURES_TTL));
        let listed = if let Some(listed) = listed {
            listed
        } else {
            self.heads = None;
            let of = PicturesOf::Album(self.id);
            Kept::read(Listed::read(&*self.store, of, None, PAGE_MAX + 1)).await?
        };
        let listed = self.listed.insert(listed);
        let heads = match self.heads.take_if(|heads| heads.is_within(HEADS_TTL)) {
            Some(heads) => heads,
            None => Kept::read(self.store.heads(&listed.value.topics())).await?,
        };
        Ok((&listed.value, &self.heads.insert(heads).value))
    }
}

impl<T> Kept<T> {
    async fn read(reading: impl Future<Output = store::Result<T>>) -> store::Result<Self> {
        let since = Instant::now();
        let value = reading.await?;
        Ok(Self { value, since })
    }

    fn is_within(&self, ttl: Duration) -> bool {
        self.since.elapsed() < ttl
    }
}

impl Unread {
    /// Takes an error apart, for another process. It is logged here.
    fn of(error: StoreError) -> Self {
        let is_unavailable = matches!(error, StoreError::Unavailable(_));
        Failure::from(error).log();
        if is_unavailable {
            Self::Unavailable
        } else {
            Self::Broken
        }
    }
}

impl From<Unread> for Failure {
    fn from(unread: Unread) -> Self {
        let source = "the process that has the album in memory logged it".into();
        Self::from(match unread {
            Unread::Unavailable => StoreError::Unavailable(source),
            Unread::Broken => StoreError::Broken(source),
        })
    }
}

#[cfg(test)]
mod tests;
