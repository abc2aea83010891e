//! Albums that are asked for: the first page of each is in the memory of one process, which is told
//! of every change.
//!
//! The entity of the kind `album` is the one place for an album in the cluster. It has no state but
//! memory: the storage alone says what there is. Whoever changes an album's pictures has stored
//! that before the entity is told, and waits for the entity before the change returns: then no
//! process shows the album as it was before. If the entity cannot be told, what it shows is 10 s
//! old at most. If it cannot be asked, the storage is, so a page fails no more often than without
//! it.

mod entity;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom::actor::ActorSystem;
use greenroom::cluster::{Cluster, HostSettings, Hosting, NameError, Remote};
use moka::future::Cache;

use crate::Failure;
use crate::completing::complete;
use crate::model::Id;
use crate::store::Store;
pub(crate) use entity::Shown;
use entity::{HotAlbum, HotAlbumRemoteMessages};

/// The dispatcher of the entities.
const DISPATCHER: &str = "actors";
/// The most albums in the memory of a process: 61 pictures each, of 4.4 KiB with the longest texts.
const ALBUMS_MAX: usize = 1_000;
/// The longest time in which an entity reads from the storage; then it forgets what it has.
const READ_MAX: Duration = Duration::from_secs(1);
/// The longest wait for an entity; then the storage is asked.
const SHOW_MAX: Duration = Duration::from_secs(1);
/// The longest wait until an entity has been told: it may be reading, and a request that waits
/// before this one may have it read once more.
const FORGET_MAX: Duration = Duration::from_secs(3);
/// The time for which an album's entity is not asked after it was waited for in vain…
const REST: Duration = Duration::from_secs(5);
/// … for as many albums at a time.
const RESTING_MAX: u64 = 10_000;

/// The albums in the memory of all processes; cheap to clone.
#[derive(Clone)]
pub struct HotAlbums {
    cluster: Cluster,
    /// Those that are not asked for the moment.
    resting: Cache<Id, ()>,
}

/// Takes albums into the memory of this process.
///
/// # Errors
/// As [`Cluster::host_with`].
pub(crate) fn host(
    cluster: &Cluster,
    system: &ActorSystem,
    store: &Arc<dyn Store>,
) -> anyhow::Result<Hosting> {
    let settings = HostSettings::default()
        .active_max(ALBUMS_MAX)
        .handling_timeout(READ_MAX)
        .dispatcher(DISPATCHER);
    let store = Arc::clone(store);
    let make = move |activation| HotAlbum::new(&activation, &store);
    Ok(cluster.host_with(system, settings, make)?)
}

impl HotAlbums {
    /// Returns the albums of the processes of a cluster.
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let resting = Cache::builder()
            .max_capacity(RESTING_MAX)
            .time_to_live(REST);
        Self {
            cluster: cluster.clone(),
            resting: resting.build(),
        }
    }

    /// Returns the first page of an album, with one picture more if there is another page. `None`
    /// if no process has it ready in time: the storage has.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) async fn show(&self, album: Id, limit: u32) -> Result<Option<Shown>, Failure> {
        if self.resting.contains_key(&album) {
            return Ok(None);
        }
        let began = Instant::now();
        let asked = async {
            let entity = self.entity(album)?;
            entity.show(limit).timeout(SHOW_MAX).ask().await
        };
        match asked.await {
            Ok(shown) => Ok(Some(shown?)),
            Err(error) => {
                tracing::debug!(%album, %error, "the storage shows an album");
                // An entity that rejects at once, such as one with a long queue, costs nothing.
                if began.elapsed() >= SHOW_MAX / 2 {
                    self.resting.insert(album, ()).await;
                }
                Ok(None)
            }
        }
    }

    /// Has an album read anew: from now on no process shows it as it was before, or at most for
    /// some seconds if the one that has it cannot be told.
    ///
    /// Once started it completes, even if the caller is cancelled.
    pub(crate) async fn forget(&self, album: Id) {
        let entity = self.entity(album);
        complete(async move {
            let told = async { entity?.forget().timeout(FORGET_MAX).ask().await };
            if let Err(error) = told.await {
                tracing::warn!(%album, %error, "an album may be shown as it was for some seconds");
            }
        })
        .await;
    }

    fn entity(&self, album: Id) -> Result<Remote<HotAlbum>, NameError> {
        self.cluster.entity(album.to_string())
    }
}

impl Debug for HotAlbums {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HotAlbums")
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}
