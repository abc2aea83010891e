//! Sessions, keys, nonces, and browsers that want notifications.

use jiff::Timestamp;
use mongodb::bson::doc;

use super::fault::{fault, is_duplicate};
use super::records::{Expiring, Stored, nanoseconds};
use super::tables::{Tables, all, delete, delete_all, find, insert, records};
use crate::model::{ApiKey, Id, PushSubscription, Session};
use crate::store::{Result, StoreError};

/// The intent of what is stored without effects, which needs none.
const NO_INTENT: &str = "";

impl Tables {
    pub(super) async fn insert_session(&self, session: &Session) -> Result<()> {
        let document = Expiring {
            id: session.token_hash.clone(),
            expires: nanoseconds(session.expires_at),
            record: session.clone(),
        };
        if insert(&self.sessions, &document).await? {
            return Ok(());
        }
        Err(StoreError::Conflict("there is a session of this token"))
    }

    pub(super) async fn session(
        &self,
        token_hash: &str,
        now: Timestamp,
    ) -> Result<Option<Session>> {
        let stored = find(&self.sessions, token_hash).await?;
        let session = stored.map(|stored| stored.record);
        Ok(session.filter(|session| session.expires_at > now))
    }

    pub(super) async fn delete_session(&self, token_hash: &str) -> Result<()> {
        delete_all(&self.pushes, doc! { "record.session": token_hash }).await?;
        delete(&self.sessions, token_hash).await.map(drop)
    }

    pub(super) async fn insert_key(&self, key: &ApiKey) -> Result<()> {
        let document = Stored::new(&key.id, NO_INTENT, key.clone());
        if insert(&self.keys, &document).await? {
            return Ok(());
        }
        Err(StoreError::Conflict("there is a key of this identifier"))
    }

    pub(super) async fn key(&self, id: Id) -> Result<Option<ApiKey>> {
        let stored = find(&self.keys, &id.to_string()).await?;
        Ok(stored.map(|stored| stored.record))
    }

    pub(super) async fn keys(&self, user: Id) -> Result<Vec<ApiKey>> {
        let found = self.keys.find(doc! { "record.user": user.to_string() });
        Ok(records(all(found.sort(doc! { "_id": 1 })).await?))
    }

    pub(super) async fn delete_key(&self, id: Id, user: Id) -> Result<bool> {
        let filter = doc! { "_id": id.to_string(), "record.user": user.to_string() };
        let deleted = self.keys.delete_one(filter).await.map_err(fault)?;
        Ok(deleted.deleted_count == 1)
    }

    pub(super) async fn use_nonce(&self, key: Id, nonce: &str, expires: Timestamp) -> Result<bool> {
        let document = Expiring {
            id: format!("{key}:{nonce}"),
            expires: nanoseconds(expires),
            record: (),
        };
        insert(&self.nonces, &document).await
    }

    pub(super) async fn insert_push(&self, subscription: &PushSubscription) -> Result<()> {
        let document = Stored::new(&subscription.endpoint, NO_INTENT, subscription.clone());
        match self.replace_push(&document).await {
            Err(error) if is_duplicate(&error) => self.replace_push(&document).await,
            replaced => replaced,
        }
        .map_err(fault)
    }

    /// Replaces a browser. Of two concurrent calls that find nothing to replace, one fails with a
    /// taken key.
    async fn replace_push(
        &self,
        document: &Stored<PushSubscription>,
    ) -> mongodb::error::Result<()> {
        let replaced = self
            .pushes
            .replace_one(doc! { "_id": &document.id }, document)
            .upsert(true)
            .await;
        replaced.map(drop)
    }

    pub(super) async fn pushes(&self, user: Id) -> Result<Vec<PushSubscription>> {
        let found = self.pushes.find(doc! { "record.user": user.to_string() });
        Ok(records(all(found).await?))
    }

    pub(super) async fn delete_push(&self, endpoint: &str) -> Result<()> {
        delete(&self.pushes, endpoint).await.map(drop)
    }
}
