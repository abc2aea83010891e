//! A change and its effects as one step: see [the module above](super).

use mongodb::bson::{Document, doc};
use serde::{Deserialize, Serialize};

use super::fault::{fault, is_duplicate};
use super::records::{PlannedEvent, Stored, StoredTask};
use super::tables::{Tables, delete, find, insert, name};
use crate::model::{Effects, Event, Id, Picture};
use crate::store::{Result, StoreError};

/// The effects that follow from a change, if it happens.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Intent {
    #[serde(rename = "_id")]
    pub(super) id: String,
    pub(super) change: Change,
    /// The identifier of the primary document.
    pub(super) primary: String,
    /// The identifiers of further ones: pictures of the same upload.
    #[serde(default)]
    pub(super) others: Vec<String>,
    /// The picture or album that the change depends on; for a deletion, what is deleted.
    pub(super) subject: Id,
    pub(super) events: Vec<PlannedEvent>,
    pub(super) tasks: Vec<StoredTask>,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    InsertUser,
    InsertPicture,
    InsertComment,
    SetLike,
    DeleteAlbum,
    DeletePicture,
    DeleteComment,
    DeleteUser,
}

impl Change {
    /// Returns the collection of its primary document.
    fn collection(self) -> &'static str {
        match self {
            Self::InsertUser => name::USERS,
            Self::InsertPicture => name::PICTURES,
            Self::InsertComment => name::COMMENTS,
            Self::SetLike => name::LIKES,
            Self::DeleteAlbum | Self::DeletePicture | Self::DeleteComment | Self::DeleteUser => {
                name::TOMBSTONES
            }
        }
    }
}

/// The result of a change.
#[derive(Debug)]
pub(super) enum Settled {
    /// Done, with these events.
    Done(Vec<Event>),
    /// Its primary document was not inserted: the unique key is taken.
    Rejected,
    /// Its picture or album is gone, so it was undone.
    Undone,
}

impl Intent {
    pub(super) fn new(
        change: Change,
        primary: &impl ToString,
        subject: Id,
        effects: &Effects,
    ) -> Self {
        Self {
            id: Id::new().to_string(),
            change,
            primary: primary.to_string(),
            others: Vec::new(),
            subject,
            events: effects.events.iter().map(PlannedEvent::new).collect(),
            tasks: effects.tasks.iter().map(StoredTask::new).collect(),
        }
    }
}

impl Tables {
    /// Makes a change, which consists in inserting this record.
    pub(super) async fn make<T>(&self, intent: &Intent, record: T) -> Result<Settled>
    where
        T: Serialize + Send + Sync,
    {
        self.begin(intent).await?;
        let primary = Stored::new(&intent.primary, &intent.id, record);
        let collection = self.database.collection(intent.change.collection());
        if !insert(&collection, &primary).await? {
            delete(&self.intents, &intent.id).await?;
            return Ok(Settled::Rejected);
        }
        self.finish(intent).await
    }

    /// Makes the change which consists in inserting these pictures.
    pub(super) async fn make_pictures(
        &self,
        intent: &Intent,
        pictures: &[Picture],
    ) -> Result<Settled> {
        self.begin(intent).await?;
        let primaries = pictures.iter();
        let primaries = primaries.map(|picture| Stored::new(&picture.id, &intent.id, picture));
        let collection = self.database.collection::<Stored<&Picture>>(name::PICTURES);
        match collection.insert_many(primaries).await {
            Ok(_) => self.finish(intent).await,
            Err(error) if is_duplicate(&error) => {
                self.take_back(intent).await?;
                Ok(Settled::Rejected)
            }
            Err(error) => Err(fault(error)),
        }
    }

    async fn begin(&self, intent: &Intent) -> Result<()> {
        if insert(&self.intents, intent).await? {
            return Ok(());
        }
        Err(StoreError::broken("an intent's identifier is not unique"))
    }

    /// Finishes an earlier change that another one builds on. Does nothing if it is finished.
    pub(super) async fn finish_earlier(&self, intent: &str) -> Result<()> {
        if let Some(intent) = find(&self.intents, intent).await? {
            self.finish(&intent).await?;
        }
        Ok(())
    }

    /// Finishes or undoes an abandoned change. `false` if it is not settled: a primary document may
    /// still come from a slow writer.
    pub(super) async fn settle_left_behind(&self, intent: &Intent) -> Result<bool> {
        if intent.change == Change::InsertPicture {
            let are_all = self.remove_unfinished(intent).await? > intent.others.len();
            return Ok(are_all && delete(&self.intents, &intent.id).await?);
        }
        let has_happened = self.has_happened(intent).await?;
        if has_happened {
            self.finish(intent).await?;
        }
        Ok(has_happened)
    }

    async fn has_happened(&self, intent: &Intent) -> Result<bool> {
        let collection = self
            .database
            .collection::<Document>(intent.change.collection());
        let primary = find(&collection, &intent.primary).await?;
        // Another change may have inserted a document of the same key.
        Ok(
            primary
                .is_some_and(|primary| primary.get_str("intent").is_ok_and(|by| by == intent.id)),
        )
    }

    /// Finishes a change. Each step can be repeated, also by two writers at once.
    async fn finish(&self, intent: &Intent) -> Result<Settled> {
        if self.is_without_subject(intent).await? {
            self.take_back(intent).await?;
            return Ok(Settled::Undone);
        }
        self.complete_deletion(intent).await?;
        let events = self.append_all(&intent.events, &intent.id).await?;
        self.add_stored_tasks(&intent.tasks).await?;
        let was_there = delete(&self.intents, &intent.id).await?;
        // A sweeper took the slow writer for dead, and has removed the picture.
        if !was_there && intent.change == Change::InsertPicture {
            return Err(StoreError::unavailable(
                "the picture took too long and was taken back",
            ));
        }
        Ok(Settled::Done(events))
    }

    /// True if the subject is gone. Checked after the primary document was inserted: a later
    /// deletion of the subject finds that document.
    async fn is_without_subject(&self, intent: &Intent) -> Result<bool> {
        match intent.change {
            Change::InsertPicture => self.is_album_deleted(intent.subject).await,
            Change::InsertComment | Change::SetLike => {
                Ok(self.picture(intent.subject).await?.is_none())
            }
            _ => Ok(false),
        }
    }

    async fn complete_deletion(&self, intent: &Intent) -> Result<()> {
        match intent.change {
            Change::DeleteAlbum => self.hide_album(intent.subject).await,
            Change::DeletePicture => self.hide_picture(intent.subject).await,
            Change::DeleteComment => self.remove_comment(intent.subject).await,
            Change::DeleteUser => self.hide_user(intent.subject).await,
            _ => Ok(()),
        }
    }

    async fn take_back(&self, intent: &Intent) -> Result<()> {
        match intent.change {
            Change::InsertPicture => {
                self.remove_unfinished(intent).await?;
            }
            change => {
                let collection = self.database.collection::<Document>(change.collection());
                let primary = doc! { "_id": &intent.primary };
                collection.delete_one(primary).await.map_err(fault)?;
            }
        }
        delete(&self.intents, &intent.id).await?;
        Ok(())
    }
}
