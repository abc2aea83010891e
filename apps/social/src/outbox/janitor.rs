//! Deletes what is left of pictures that are gone, and what has expired.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use super::Clock;
use super::worker::{Doer, Setback, payload};
use crate::files::Files;
use crate::model::{Id, Task, TaskKind};
use crate::store::{self, Retention, Store};

/// How often the storage is pruned.
const PRUNE_EVERY: Duration = Duration::from_mins(1);
/// How often it is pruned again at once, at most, while there is more: up to a million of each kind.
const PRUNES_MAX: u32 = 100;
/// How long one try removes an album's pictures. Then the next try goes on, before this one has taken too long.
const WORK_MAX: Duration = Duration::from_secs(20);
/// Pictures that are looked up at a time.
const PAGE: u32 = 100;

/// How long is kept what nobody needs any more.
const RETENTION: Retention = Retention {
    events_max: 10_000,
    events_for: Duration::from_hours(7 * 24),
    // The digests of a day are added again up to a day later: their keys must be known until then.
    tasks_for: Duration::from_hours(48),
};

/// Deletes files first and records last: as long as there are files, a record says whose they are.
pub(super) struct Janitor {
    store: Arc<dyn Store>,
    files: Files,
    leftovers_after: Duration,
    clock: Clock,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Gone {
    Album(Id),
    Picture(Id),
    /// Files that were stored for a picture; its record may never have been.
    Unkept(Id),
}

impl Janitor {
    pub(super) fn new(
        store: &Arc<dyn Store>,
        files: &Files,
        leftovers_after: Duration,
        clock: &Clock,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            files: files.clone(),
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

    /// A process that was killed between the files and the record left them behind.
    async fn sweep_picture(&self, picture: Id) -> Result<(), Setback> {
        if self.store.picture(picture).await?.is_some() {
            return Ok(());
        }
        self.files
            .sweep_picture(picture)
            .await
            .map_err(Setback::temporary)
    }

    /// What is younger may be of an upload that is under way, here or on another replica.
    async fn sweep_uploads(&self) {
        let now = (self.clock)();
        let Ok(until) = now.checked_sub(self.leftovers_after) else {
            return;
        };
        match self.files.sweep_uploads(until.into()).await {
            Ok(0) => {}
            Ok(swept) => tracing::info!(swept, "files of unfinished uploads were deleted"),
            Err(error) => {
                tracing::warn!(%error, "files of unfinished uploads cannot be deleted; it is tried again");
            }
        }
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
