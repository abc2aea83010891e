//! Deletes what deleted pictures and users leave behind, and what has expired.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use super::Clock;
use super::worker::{Doer, Setback, payload};
use crate::feed::Feed;
use crate::files::Files;
use crate::model::{Effects, Id, NewEvent, Task, TaskKind};
use crate::store::{self, Retention, Store, StoreError};

/// Interval between prunings of the storage.
const PRUNE_EVERY: Duration = Duration::from_mins(1);
/// Most prunings in a row while there is more to prune: up to a million rows of each kind.
const PRUNES_MAX: u32 = 100;
/// Time that one try spends removing an album's pictures, or a user's comments and likes. The next
/// try goes on from there, so that none takes too long.
const WORK_MAX: Duration = Duration::from_secs(20);
/// Pictures, comments or likes read at a time.
const PAGE: u32 = 100;
/// Time after a user's deletion during which a request admitted before it may still be running.
const LATE: Duration = Duration::from_secs(30);

/// Retention of events and finished tasks.
const RETENTION: Retention = Retention {
    events_max: 10_000,
    events_for: Duration::from_hours(7 * 24),
    // The digests of a day are added again up to a day later: their keys must be known until then.
    tasks_for: Duration::from_hours(48),
};

/// An actor that deletes files first and records last: as long as there are files, a record names
/// their owner.
pub(super) struct Janitor {
    store: Arc<dyn Store>,
    files: Files,
    feed: Feed,
    leftovers_after: Duration,
    clock: Clock,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Gone {
    Album(Id),
    Picture(Id),
    /// Files that were stored for a picture whose record may never have been.
    Unkept(Id),
    User(Id),
}

impl Janitor {
    pub(super) fn new(
        store: &Arc<dyn Store>,
        files: &Files,
        feed: &Feed,
        leftovers_after: Duration,
        clock: &Clock,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            files: files.clone(),
            feed: feed.clone(),
            leftovers_after,
            clock: Arc::clone(clock),
        }
    }

    async fn remove_album(&self, album: Id) -> Result<(), Setback> {
        let began = Instant::now();
        loop {
            let pictures = self.store.removed_pictures(album, PAGE).await?;
            if pictures.is_empty() {
                return Ok(());
            }
            for picture in pictures {
                if began.elapsed() >= WORK_MAX {
                    return Err(Setback::Unfinished);
                }
                self.remove_picture(picture).await?;
            }
        }
    }

    async fn remove_picture(&self, picture: Id) -> Result<(), Setback> {
        self.files
            .remove(picture)
            .await
            .map_err(Setback::temporary)?;
        Ok(self.store.purge_picture(picture).await?)
    }

    /// Deletes the files of a picture without a record: a process was killed between storing the
    /// two.
    async fn sweep_picture(&self, picture: Id) -> Result<(), Setback> {
        if self.store.picture(picture).await?.is_some() {
            return Ok(());
        }
        self.files
            .sweep_picture(picture)
            .await
            .map_err(Setback::temporary)
    }

    /// Deletes old unfinished uploads. Younger ones may be in progress, here or on another replica.
    async fn sweep_uploads(&self) {
        let now = (self.clock)();
        let Ok(until) = now.checked_sub(self.leftovers_after) else {
            return;
        };
        self.files.sweep_unfinished(until.into()).await;
    }
}

/// The removal of a user's data. Events notify open pages.
impl Janitor {
    /// Removes a deleted user. The record goes last, after the last request that may still add
    /// something.
    async fn remove_user(&self, user: Id, task: &Task) -> Result<(), Setback> {
        let began = Instant::now();
        for album in self.store.albums(user).await? {
            let events = self.store.delete_album(album.id).await?;
            self.feed.publish(&events.unwrap_or_default()).await;
        }
        self.remove_comments(user, began).await?;
        self.remove_likes(user, began).await?;
        self.unring(user, began).await?;
        let age = (self.clock)().duration_since(task.added_at);
        let age = Duration::try_from(age).unwrap_or_default();
        if let Some(rest) = LATE.checked_sub(age).filter(|rest| !rest.is_zero()) {
            return Err(Setback::Temporary {
                error: "waiting for late requests".to_owned(),
                after: Some(rest),
            });
        }
        Ok(self.store.purge_user(user).await?)
    }

    async fn remove_comments(&self, user: Id, began: Instant) -> Result<(), Setback> {
        loop {
            let comments = self.store.comments_by(user, PAGE).await?;
            if comments.is_empty() {
                return Ok(());
            }
            for comment in &comments {
                check_time(began)?;
                let effects = event_only(NewEvent::comment_deleted(comment));
                let events = self.store.delete_comment(comment.id, effects).await?;
                self.feed.publish(&events.unwrap_or_default()).await;
            }
        }
    }

    async fn remove_likes(&self, user: Id, began: Instant) -> Result<(), Setback> {
        // Likes of pictures that are gone stay until those are purged, and are passed over.
        let mut after = None;
        loop {
            let pictures = self.store.likes_by(user, after, PAGE).await?;
            let Some(last) = pictures.last() else {
                return Ok(());
            };
            after = Some(*last);
            for picture in pictures {
                check_time(began)?;
                self.remove_like(picture, user).await?;
            }
        }
    }

    /// Removes a like, unless the picture is gone: then its likes go with it.
    async fn remove_like(&self, picture: Id, user: Id) -> Result<(), Setback> {
        let effects = event_only(NewEvent::like(picture, user, false));
        match self.store.set_like(picture, user, false, effects).await {
            Ok(change) => self.feed.publish(&change.events).await,
            Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Blanks the user's events in all bells, also those of likes that were undone since.
    async fn unring(&self, user: Id, began: Instant) -> Result<(), Setback> {
        loop {
            let rings = self.store.rings_by(user, PAGE).await?;
            if rings.is_empty() {
                return Ok(());
            }
            for (bell, key) in rings {
                check_time(began)?;
                self.store.blank_event(&bell, &key).await?;
            }
        }
    }
}

fn check_time(began: Instant) -> Result<(), Setback> {
    if began.elapsed() >= WORK_MAX {
        return Err(Setback::Unfinished);
    }
    Ok(())
}

fn event_only(event: NewEvent) -> Effects {
    Effects {
        events: vec![event],
        tasks: Vec::new(),
    }
}

impl Doer for Janitor {
    const KIND: TaskKind = TaskKind::Remove;
    const CHORE_EVERY: Option<Duration> = Some(PRUNE_EVERY);

    async fn attempt(&self, task: &Task) -> Result<(), Setback> {
        match payload(task)? {
            Gone::Album(album) => self.remove_album(album).await,
            Gone::Picture(picture) => self.remove_picture(picture).await,
            Gone::Unkept(picture) => self.sweep_picture(picture).await,
            Gone::User(user) => self.remove_user(user, task).await,
        }
    }

    async fn chore(&self) -> store::Result<()> {
        self.sweep_uploads().await;
        for _ in 0..PRUNES_MAX {
            if !self.store.prune((self.clock)(), RETENTION).await? {
                break;
            }
        }
        Ok(())
    }
}
