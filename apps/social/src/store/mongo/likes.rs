//! Likes: a chain of toggles for each picture and user.
//!
//! The identifier of a toggle holds its number, so of two writers that build on the same one only
//! one succeeds, and the other one reads again. Toggles stay until their picture goes: were one
//! deleted earlier, its number could be used again by a slow writer.

use std::hash::{BuildHasher, RandomState};

use mongodb::bson::doc;
use tokio::sync::{Mutex, MutexGuard};

use super::fault::fault;
use super::intents::{Change, Intent, Settled};
use super::records::{Stored, Toggle};
use super::tables::{Tables, all, find};
use crate::model::{Effects, Head, Id, topic};
use crate::store::{LikeChange, Result, StoreError};

/// Most tries of a change whose number another replica has taken: for the same user.
const TRIES_MAX: u32 = 10;

/// Number of locks; more make it less likely that two users wait for each other.
const LOCKS: usize = 256;

/// Locks that keep a user's requests to this process from racing for the same number. Other
/// replicas still do.
#[derive(Debug)]
pub(super) struct Chains {
    hasher: RandomState,
    locks: [Mutex<()>; LOCKS],
}

impl Default for Chains {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            locks: [const { Mutex::const_new(()) }; LOCKS],
        }
    }
}

impl Chains {
    async fn lock(&self, picture: Id, user: Id) -> MutexGuard<'_, ()> {
        let hash = self.hasher.hash_one((picture, user)) % LOCKS as u64;
        let index = usize::try_from(hash).unwrap_or_default();
        self.locks[index].lock().await
    }
}

impl Tables {
    pub(super) async fn set_like(
        &self,
        picture: Id,
        user: Id,
        liked: bool,
        effects: &Effects,
    ) -> Result<LikeChange> {
        let changed = self.change_like(picture, user, liked, effects).await?;
        match changed {
            Some(change) => Ok(change),
            None => self.unchanged(picture).await,
        }
    }

    /// Changes a like; `None` if there is nothing to change.
    async fn change_like(
        &self,
        picture: Id,
        user: Id,
        liked: bool,
        effects: &Effects,
    ) -> Result<Option<LikeChange>> {
        let _alone = self.chains.lock(picture, user).await;
        for _ in 0..TRIES_MAX {
            let last = self.last_toggle(picture, user).await?;
            if last.as_ref().is_some_and(|last| last.on) == liked {
                return Ok(None);
            }
            let toggle = Toggle {
                picture,
                user,
                number: last.map_or(1, |last| last.number + 1),
                on: liked,
            };
            if let Some(change) = self.toggle(toggle, effects).await? {
                return Ok(Some(change));
            }
        }
        let failure = "the same like is being changed by many replicas at once";
        Err(StoreError::unavailable(failure))
    }

    /// Returns the last toggle, whose effects are written. Most chains are empty, so the first
    /// toggle is looked up by its identifier.
    async fn last_toggle(&self, picture: Id, user: Id) -> Result<Option<Toggle>> {
        if find(&self.likes, &identifier(picture, user, 1))
            .await?
            .is_none()
        {
            return Ok(None);
        }
        let chain = doc! { "record.user": user.to_string(), "record.picture": picture.to_string() };
        let found = self
            .likes
            .find_one(chain)
            .sort(doc! { "record.number": -1 });
        let Some(last) = found.await.map_err(fault)? else {
            return Ok(None);
        };
        self.finish_earlier(&last.intent).await?;
        Ok(Some(last.record))
    }

    async fn unchanged(&self, picture: Id) -> Result<LikeChange> {
        if self.picture(picture).await?.is_none() {
            return Err(gone());
        }
        Ok(LikeChange {
            changed: false,
            events: Vec::new(),
            likes: self.end(&topic::likes(picture)).await?,
        })
    }

    /// Inserts a toggle; `None` if its number is taken.
    async fn toggle(&self, toggle: Toggle, effects: &Effects) -> Result<Option<LikeChange>> {
        let picture = toggle.picture;
        let id = identifier(picture, toggle.user, toggle.number);
        let intent = Intent::new(Change::SetLike, &id, picture, effects);
        let events = match self.make(&intent, toggle).await? {
            Settled::Done(events) => events,
            Settled::Rejected => return Ok(None),
            Settled::Undone => return Err(gone()),
        };
        let topic = topic::likes(picture);
        let likes = match events.iter().rfind(|event| event.topic == topic) {
            Some(event) => Head {
                seq: event.seq,
                total: event.total,
            },
            None => self.end(&topic).await?,
        };
        Ok(Some(LikeChange {
            changed: true,
            events,
            likes,
        }))
    }

    pub(super) async fn liked(&self, user: Id, pictures: &[Id]) -> Result<Vec<Id>> {
        let pictures: Vec<String> = pictures.iter().map(Id::to_string).collect();
        let filter =
            doc! { "record.user": user.to_string(), "record.picture": { "$in": pictures } };
        Ok(on(all(self.likes.find(filter)).await?))
    }

    /// Returns the pictures that the user likes, those behind `after`. Scans all chains of the
    /// user: chains of likes that have ended are there too, so a page of toggles could hold none
    /// that is on.
    pub(super) async fn likes_by(
        &self,
        user: Id,
        after: Option<Id>,
        limit: u32,
    ) -> Result<Vec<Id>> {
        let by_user = doc! { "record.user": user.to_string() };
        let mut pictures = on(all(self.likes.find(by_user)).await?);
        pictures.retain(|picture| Some(*picture) > after);
        pictures.truncate(limit as usize);
        Ok(pictures)
    }
}

/// Returns the pictures whose chain ends with a like.
fn on(mut toggles: Vec<Stored<Toggle>>) -> Vec<Id> {
    toggles.sort_by_key(|toggle| (toggle.record.picture, -toggle.record.number));
    toggles.dedup_by_key(|toggle| toggle.record.picture);
    let on = toggles.into_iter().filter(|toggle| toggle.record.on);
    on.map(|toggle| toggle.record.picture).collect()
}

fn identifier(picture: Id, user: Id, number: i64) -> String {
    format!("{picture}:{user}:{number}")
}

fn gone() -> StoreError {
    StoreError::Conflict("the picture is gone")
}
