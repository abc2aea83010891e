//! A storage, a clock that can be put forward, and outboxes that work on them.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use greenroom::actor::{ActorSystem, Dispatcher};
use greenroom::bus::Bus;
use jiff::Timestamp;
use serde_json::{Value, json};
use social::config::{FilesSettings, Settings, StoreSettings};
use social::feed::Feed;
use social::files::Files;
use social::model::{Album, Effects, Id, Media, NewEvent, NewTask, Picture, TaskKind, User, topic};
use social::outbox::{Clock, Outbox};
use social::store::{self, Store};
use tempfile::TempDir;

use crate::fakes::Cell;

/// Interval of polling.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Longest wait.
const PATIENCE: Duration = Duration::from_mins(3);

pub(crate) struct Fixture {
    pub(crate) settings: Settings,
    pub(crate) store: Arc<dyn Store>,
    _directory: TempDir,
    ahead: Arc<Cell<Duration>>,
}

/// The parts of one replica.
pub(crate) struct Replica {
    pub(crate) system: ActorSystem,
    pub(crate) outbox: Outbox,
    pub(crate) bus: Bus,
}

impl Fixture {
    pub(crate) async fn open() -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let mut settings = Settings {
            store: StoreSettings::Sqlite(directory.path().join("social.db")),
            files: FilesSettings::Directory(directory.path().join("files")),
            ..Settings::default()
        };
        settings.push.allow_private = true;
        settings.webhook.allow_private = true;
        let store = store::open(&settings.store)
            .await
            .expect("the storage opens");
        Self {
            settings,
            store,
            _directory: directory,
            ahead: Arc::default(),
        }
    }

    pub(crate) fn files(&self) -> Files {
        Files::open(&self.settings.files).expect("the directory is made")
    }

    pub(crate) fn replica(&self) -> Replica {
        let system = ActorSystem::builder()
            .dispatcher("actors", Dispatcher::pool(1))
            .build()
            .expect("a system is built");
        let bus = Bus::in_process();
        let feed = Feed::start(&system, &bus, &self.store, &self.settings.feed);
        let feed = feed.expect("the settings are right");
        let outbox = Outbox::start_with(
            &system,
            &self.store,
            &self.files(),
            &feed,
            &self.settings,
            &self.clock(),
        );
        let outbox = outbox.expect("the settings are right");
        Replica {
            system,
            outbox,
            bus,
        }
    }

    /// Puts the clock of all replicas forward.
    pub(crate) fn advance(&self, by: Duration) {
        self.ahead.with(|ahead| *ahead += by);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock()()
    }

    fn clock(&self) -> Clock {
        let ahead = Arc::clone(&self.ahead);
        Arc::new(move || Timestamp::now() + ahead.get())
    }

    /// Waits until no task of this kind is left. Puts the clock forward to the next try.
    pub(crate) async fn done(&self, replica: &Replica, kind: TaskKind) {
        let all_done = async {
            while let Some(due) = self
                .store
                .next_task(kind)
                .await
                .expect("the storage is there")
            {
                let until = Duration::try_from(due.duration_since(self.now())).unwrap_or_default();
                if until > Duration::ZERO && until < Duration::from_secs(50) {
                    self.advance(until); // a try, and not the lease of one that is under way
                }
                replica.outbox.wake(kind);
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, all_done).await;
        assert!(in_time.is_ok(), "there is work left of the kind {kind}");
    }

    pub(crate) async fn user(&self, name: &str) -> User {
        let email = format!("{name}@example.org");
        self.user_with(name, email, None).await
    }

    /// Adds a user who has signed up, and not confirmed their address.
    pub(crate) async fn unconfirmed(&self, name: &str) -> User {
        let wanted = format!("{name}@example.org");
        self.user_with(name, String::new(), Some(wanted)).await
    }

    async fn user_with(&self, name: &str, email: String, wanted_email: Option<String>) -> User {
        let user = User {
            id: Id::new(),
            name: name.to_owned(),
            display: format!("Dr. {name}"),
            email,
            wanted_email,
            about: String::new(),
            password: String::new(),
            webhook: None,
            digest: true,
            bell_seen: 0,
            joined_at: Timestamp::now(),
            generation: 0,
        };
        let inserted = self.store.insert_user(&user, Effects::default()).await;
        inserted.expect("the user is new");
        user
    }

    pub(crate) async fn album(&self, owner: &User) -> Album {
        let album = Album {
            id: Id::new(),
            owner: owner.author(),
            title: "Summer".to_owned(),
            created_at: Timestamp::now(),
        };
        self.store
            .insert_album(&album)
            .await
            .expect("the album is new");
        album
    }

    pub(crate) async fn picture(&self, album: &Album, caption: &str) -> Picture {
        let picture = Picture {
            id: Id::new(),
            album: album.id,
            owner: album.owner.clone(),
            caption: caption.to_owned(),
            alt: String::new(),
            media: Media::Png,
            width: 1,
            height: 1,
            bytes: 1,
            created_at: Timestamp::now(),
        };
        let inserted = self
            .store
            .insert_pictures(slice::from_ref(&picture), Effects::default())
            .await;
        inserted.expect("the picture is new");
        picture
    }

    /// Stores an action on a picture: it rings, and these tasks are added.
    pub(crate) async fn ring(&self, picture: &Picture, kind: &str, by: &str, tasks: &[TaskKind]) {
        let action = format!("{kind}:{}:{by}", picture.id);
        let body = json!({"kind": kind, "by": by, "picture": picture.id});
        let payload =
            json!({"user": picture.owner.id, "kind": kind, "by": by, "picture": picture.id});
        let bell = NewEvent {
            topic: topic::bell(picture.owner.id),
            key: action.clone(),
            delta: 1,
            body,
        };
        let task = |kind: &TaskKind| self.task(&format!("{kind}:{action}"), *kind, payload.clone());
        let effects = Effects {
            events: vec![bell],
            tasks: tasks.iter().map(task).collect(),
        };
        let liked = self
            .store
            .set_like(picture.id, Id::new(), true, effects)
            .await;
        liked.expect("the picture is there");
    }

    pub(crate) async fn add(&self, key: &str, kind: TaskKind, payload: Value) {
        let added = self
            .store
            .add_tasks(vec![self.task(key, kind, payload)])
            .await;
        added.expect("the storage is there");
    }

    fn task(&self, key: &str, kind: TaskKind, payload: Value) -> NewTask {
        NewTask {
            key: key.to_owned(),
            kind,
            payload,
            due: self.now(),
        }
    }
}
