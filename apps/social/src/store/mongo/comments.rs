//! Comments.

use mongodb::bson::doc;

use super::intents::{Change, Intent, Settled};
use super::records::Tombstone;
use super::tables::{Tables, delete, find, page, records};
use crate::model::{Comment, Effects, Event, Id, topic};
use crate::store::{Result, StoreError};

impl Tables {
    pub(super) async fn insert_comment(
        &self,
        comment: &Comment,
        effects: &Effects,
    ) -> Result<Vec<Event>> {
        let gone = || StoreError::Conflict("the picture is gone");
        if self.picture(comment.picture).await?.is_none() {
            return Err(gone());
        }
        let intent = Intent::new(Change::InsertComment, &comment.id, comment.picture, effects);
        match self.make(&intent, comment).await? {
            Settled::Done(events) => Ok(events),
            Settled::Rejected => Err(StoreError::Conflict(
                "there is a comment of this identifier",
            )),
            Settled::Undone => Err(gone()),
        }
    }

    pub(super) async fn comment(&self, id: Id) -> Result<Option<Comment>> {
        let stored = find(&self.comments, &id.to_string()).await?;
        Ok(stored.map(|stored| stored.record))
    }

    pub(super) async fn comments(
        &self,
        picture: Id,
        after: Option<Id>,
        limit: u32,
    ) -> Result<Vec<Comment>> {
        let mut filter = doc! { "record.picture": picture.to_string() };
        if let Some(id) = after {
            filter.insert("_id", doc! { "$gt": id.to_string() });
        }
        let found = self.comments.find(filter).sort(doc! { "_id": 1 });
        Ok(records(page(found, limit).await?))
    }

    pub(super) async fn comments_by(&self, author: Id, limit: u32) -> Result<Vec<Comment>> {
        let by_author = doc! { "record.author.id": author.to_string() };
        let found = self.comments.find(by_author).sort(doc! { "_id": 1 });
        Ok(records(page(found, limit).await?))
    }

    pub(super) async fn delete_comment(
        &self,
        id: Id,
        effects: &Effects,
    ) -> Result<Option<Vec<Event>>> {
        let Some(comment) = find(&self.comments, &id.to_string()).await? else {
            return Ok(None);
        };
        self.finish_earlier(&comment.intent).await?;
        let intent = Intent::new(Change::DeleteComment, &format!("comment:{id}"), id, effects);
        match self.make(&intent, Tombstone::now()).await? {
            Settled::Done(events) => Ok(Some(events)),
            Settled::Rejected | Settled::Undone => Ok(None),
        }
    }

    /// Removes a comment. The record goes last: it names the topic that has the event.
    pub(super) async fn remove_comment(&self, id: Id) -> Result<()> {
        let text = id.to_string();
        let Some(comment) = self.comment(id).await? else {
            return Ok(());
        };
        self.blank_event(&topic::comments(comment.picture), &text)
            .await?;
        delete(&self.comments, &text).await.map(drop)
    }
}
