//! A storage, and replicas of the feed on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::any;
use greenroom::actor::{ActorSystem, Dispatcher};
use greenroom::bus::Bus;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use social::config::{FeedSettings, StoreSettings};
use social::feed::{Credential, Feed, Watcher};
use social::model::{Effects, Event, Id, NewEvent, Session, User};
use social::store::{self, Store};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::client::Client;

/// A time longer than any test.
pub(crate) const NEVER: Duration = Duration::from_hours(1);

/// A storage, and users and events in it.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    _directory: Arc<TempDir>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let settings = StoreSettings::Sqlite(directory.path().join("social.db"));
        Self {
            store: store::open(&settings).await.expect("a storage"),
            _directory: Arc::new(directory),
        }
    }

    /// Stores so many events of a topic, and publishes nothing.
    pub(crate) async fn store(&self, topic: &str, count: usize) -> Vec<Event> {
        let events = (0..count).map(|_| NewEvent {
            topic: topic.to_owned(),
            key: Id::new().to_string(),
            delta: 1,
            body: json!({"by": "ada", "liked": true}),
        });
        let effects = Effects {
            events: events.collect(),
            tasks: Vec::new(),
        };
        self.store
            .insert_user(&somebody(), effects)
            .await
            .expect("stored")
    }

    /// Starts a replica with a bus of its own, that practically never polls for missed events.
    pub(crate) async fn replica(&self) -> Replica {
        self.replica_with(
            &Bus::in_process(),
            FeedSettings {
                check_every: NEVER,
                ..FeedSettings::default()
            },
        )
        .await
    }

    /// Adds a user.
    pub(crate) async fn user(&self) -> Id {
        let user = somebody();
        let added = self.store.insert_user(&user, Effects::default()).await;
        added.expect("the user is new");
        user.id
    }

    /// Adds a session of a user; returns its end.
    pub(crate) async fn session(&self, user: Id, token: &str, lasts: Duration) -> Timestamp {
        let session = Session {
            token_hash: token.to_owned(),
            user,
            csrf: String::new(),
            expires_at: Timestamp::now() + lasts,
            generation: 0,
        };
        let kept = self.store.insert_session(&session).await;
        kept.expect("there is room for a session");
        session.expires_at
    }

    pub(crate) async fn replica_with(&self, bus: &Bus, settings: FeedSettings) -> Replica {
        Replica::start(self.clone(), bus.clone(), &settings).await
    }
}

fn somebody() -> User {
    let id = Id::new();
    User {
        id,
        name: id.to_string(),
        display: "Somebody".to_owned(),
        email: "somebody@example.org".to_owned(),
        wanted_email: None,
        about: String::new(),
        password: String::new(),
        webhook: None,
        digest: false,
        bell_seen: 0,
        joined_at: Timestamp::now(),
        generation: 0,
    }
}

/// A server of the feed; it ends when it is dropped.
pub(crate) struct Replica {
    pub(crate) feed: Feed,
    pub(crate) bus: Bus,
    world: World,
    system: ActorSystem,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Replica {
    async fn start(world: World, bus: Bus, settings: &FeedSettings) -> Self {
        let system = ActorSystem::builder()
            .dispatcher("actors", Dispatcher::pool(1))
            .dispatcher("loop", Dispatcher::on_loop())
            .build()
            .expect("a system");
        let feed = Feed::start(&system, &bus, &world.store, settings).expect("a feed");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let app = axum::Router::new()
            .route("/feed", any(connect))
            .with_state(feed.clone());
        let serving = tokio::spawn(async move {
            greenroom::serve(listener, app).await.expect("it serves");
        });
        Self {
            feed,
            bus,
            world,
            system,
            address,
            serving,
        }
    }

    /// Stores and publishes so many events.
    pub(crate) async fn happen(&self, topic: &str, count: usize) {
        let events = self.world.store(topic, count).await;
        self.feed.publish(&events).await;
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect_with(self.address, "").await
    }

    /// Connects a client by a session of its own.
    pub(crate) async fn client_of(&self, viewer: Id) -> Client {
        let token = Id::new().to_string();
        let lasts = Duration::from_hours(1);
        let expires_at = self.world.session(viewer, &token, lasts).await;
        self.client_of_session(viewer, &token, expires_at).await
    }

    pub(crate) async fn client_of_session(
        &self,
        user: Id,
        token: &str,
        expires_at: Timestamp,
    ) -> Client {
        let query = format!("?viewer={user}&session={token}&expires_at={expires_at}");
        Client::connect_with(self.address, &query).await
    }

    pub(crate) async fn client_of_key(&self, user: Id, key: Id) -> Client {
        Client::connect_with(self.address, &format!("?viewer={user}&key={key}")).await
    }

    pub(crate) async fn shut_down(&self) {
        self.system.shutdown(Duration::from_secs(10)).await;
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Deserialize)]
struct Asking {
    viewer: Option<Id>,
    session: Option<String>,
    key: Option<Id>,
    expires_at: Option<Timestamp>,
}

async fn connect(
    State(feed): State<Feed>,
    Query(who): Query<Asking>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let credential = match (who.session, who.key) {
        (_, Some(key)) => Credential::Key(key),
        (session, None) => Credential::Session(session.unwrap_or_default()),
    };
    let watcher = who.viewer.map(|user| Watcher {
        user,
        credential,
        expires_at: who.expires_at,
    });
    feed.connect(watcher, upgrade)
}
