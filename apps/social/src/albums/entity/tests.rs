use std::slice;
use std::sync::mpsc;

use jiff::Timestamp;
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::{advance, pause};

use super::*;
use crate::config::StoreSettings;
use crate::model::{Album, Author, Effects, Media, NewEvent, Picture, topic};

/// An album with pictures that have the longest texts.
struct World {
    store: Arc<dyn Store>,
    album: Album,
    /// Ends the task that keeps time from moving on by itself while the storage reads.
    _still: mpsc::Sender<()>,
    _directory: TempDir,
}

impl World {
    async fn with(pictures: u32) -> Self {
        let directory = TempDir::new().expect("a directory");
        let settings = StoreSettings::Sqlite(directory.path().join("social.db"));
        let store = store::open(&settings).await.expect("a storage");
        let name = "a".repeat(30);
        let album = Album {
            id: Id::new(),
            owner: Author {
                id: Id::new(),
                name,
            },
            title: "Ducks".to_owned(),
            created_at: Timestamp::now(),
        };
        let (still, until) = mpsc::channel();
        spawn_blocking(move || until.recv());
        store.insert_album(&album).await.expect("stored");
        let world = Self {
            store,
            album,
            _still: still,
            _directory: directory,
        };
        for _ in 0..pictures {
            world.add().await;
        }
        world
    }

    async fn add(&self) -> Picture {
        let picture = Picture {
            id: Id::new(),
            album: self.album.id,
            owner: self.album.owner.clone(),
            caption: "🦆".repeat(500),
            alt: "🦆".repeat(500),
            media: Media::Jpeg,
            width: u32::MAX,
            height: u32::MAX,
            bytes: u64::from(u32::MAX),
            created_at: Timestamp::now(),
        };
        let stored = self
            .store
            .insert_pictures(slice::from_ref(&picture), Effects::default());
        stored.await.expect("stored");
        picture
    }

    async fn like(&self, picture: &Picture) {
        let user = Id::new();
        let effects = Effects {
            events: vec![NewEvent::like(picture.id, user, true)],
            tasks: Vec::new(),
        };
        let liked = self.store.set_like(picture.id, user, true, effects);
        liked.await.expect("stored");
    }

    /// Returns its entity, with time standing still.
    fn entity(&self) -> HotAlbum {
        pause();
        HotAlbum {
            id: self.album.id,
            store: Arc::clone(&self.store),
            listed: None,
            heads: None,
        }
    }
}

async fn shown(entity: &mut HotAlbum) -> Shown {
    entity.show(PAGE_MAX).await.expect("the storage is there")
}

#[tokio::test]
async fn a_change_shows_once_it_was_told_or_after_ten_seconds() {
    let world = World::with(1).await;
    let mut entity = world.entity();
    assert_eq!(shown(&mut entity).await.listed.pictures.len(), 1);
    world.add().await;
    advance(Duration::from_secs(9)).await;
    assert_eq!(shown(&mut entity).await.listed.pictures.len(), 1);
    advance(Duration::from_secs(1)).await;
    assert_eq!(shown(&mut entity).await.listed.pictures.len(), 2);
    world.add().await;
    entity.forget();
    assert_eq!(shown(&mut entity).await.listed.pictures.len(), 3);
}

#[tokio::test]
async fn counts_are_a_second_old_at_most_and_come_with_their_place_in_the_log() {
    let world = World::with(1).await;
    let picture = world.add().await;
    let mut entity = world.entity();
    let likes = topic::likes(picture.id);
    assert_eq!(shown(&mut entity).await.heads.get(&likes), None);
    world.like(&picture).await;
    advance(Duration::from_millis(999)).await;
    assert_eq!(shown(&mut entity).await.heads.get(&likes), None);
    advance(Duration::from_millis(1)).await;
    let head = Head { seq: 1, total: 1 };
    assert_eq!(shown(&mut entity).await.heads.get(&likes), Some(&head));
}

#[tokio::test]
async fn a_page_has_one_picture_more_if_there_is_another_page() {
    let world = World::with(3).await;
    let mut entity = world.entity();
    for (limit, pictures) in [(1, 2), (2, 3), (3, 3), (u32::MAX, 3)] {
        let shown = entity.show(limit).await.expect("the storage is there");
        assert_eq!(shown.listed.pictures.len(), pictures, "{limit}");
    }
}

#[tokio::test]
async fn the_longest_page_fits_into_a_message() {
    let world = World::with(PAGE_MAX + 1).await;
    let shown = shown(&mut world.entity()).await;
    assert_eq!(shown.listed.pictures.len(), PAGE_MAX as usize + 1);
    let bytes = serde_json::to_vec(&shown).expect("JSON").len();
    assert!(bytes < 300 * 1_024, "{bytes} of 512 KiB");
}
