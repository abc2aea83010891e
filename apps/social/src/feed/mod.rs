#![doc = include_str!("README.md")]

mod client;
mod command;
mod feeder;
mod frame;
mod log;
mod meters;
mod page;
mod sessions;
mod subscriber;
mod waker;
mod watchable;

use std::sync::Arc;

use axum::extract::WebSocketUpgrade;
use axum::response::Response;
use greenroom::actor::web::{WebSocketSettings, websocket};
use greenroom::actor::{ActorRef, ActorSystem};
use greenroom::bus::{Bus, PublishError, SinkSubscription};
use tokio::sync::Semaphore;

use crate::config::FeedSettings;
use crate::model::{Event, Id};
use crate::store::Store;
use client::{Client, OUTBOX_FRAMES};
use command::COMMAND_BYTES_MAX;
use feeder::Feeder;
use meters::Meters;
use sessions::{Connections, Ended};

pub use sessions::{Credential, Scope, Watcher};

/// The dispatcher of Subscriber and Feeder. Clients run on `loop`, beside their connections.
const DISPATCHER: &str = "actors";
/// Pages that all clients together may read from the storage at a time, so that many who reconnect
/// at once do not crowd out everything else.
const READS_MAX: usize = 16;

/// The live feed of this replica. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Feed {
    system: ActorSystem,
    bus: Bus,
    shared: Arc<Shared>,
    _ends: Arc<SinkSubscription>,
}

/// The state that all clients share.
#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    feeder: ActorRef<Feeder>,
    settings: FeedSettings,
    reads: Semaphore,
    meters: Meters,
    connections: Arc<Connections>,
}

impl Feed {
    /// Starts the actors Subscriber and Feeder, on the dispatcher `actors`.
    ///
    /// # Errors
    /// Fails if a setting is 0 that must not be, the system has no dispatcher `actors`, or the bus
    /// takes no more subscriptions.
    pub fn start(
        system: &ActorSystem,
        bus: &Bus,
        store: &Arc<dyn Store>,
        settings: &FeedSettings,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!(
            settings.topics_max > 0,
            "`feed.topics_max` must be at least 1"
        );
        anyhow::ensure!(
            settings.recent_max > 0,
            "`feed.recent_max` must be at least 1"
        );
        anyhow::ensure!(
            !settings.check_every.is_zero(),
            "`feed.check_every` must not be 0"
        );
        anyhow::ensure!(
            !settings.sessions_check_every.is_zero(),
            "`feed.sessions_check_every` must not be 0"
        );
        let make = {
            let (bus, store, settings) = (bus.clone(), Arc::clone(store), settings.clone());
            move || Feeder::new(bus.clone(), Arc::clone(&store), settings.clone())
        };
        let connections = Arc::new(Connections::default());
        let ends = sessions::hear(bus, store, &connections)?;
        sessions::look_regularly(settings.sessions_check_every, store, &connections);
        let shared = Shared {
            connections,
            store: Arc::clone(store),
            feeder: system
                .build(make)
                .name("feeder")
                .dispatcher(DISPATCHER)
                .spawn()?,
            settings: settings.clone(),
            reads: Semaphore::new(READS_MAX),
            meters: Meters::new(),
        };
        Ok(Self {
            system: system.clone(),
            bus: bus.clone(),
            shared: Arc::new(shared),
            _ends: ends,
        })
    }

    /// Publishes events to their watchers on all replicas.
    ///
    /// The events are in the storage already, so what is lost on the way is caught up with later;
    /// nothing is returned, and nothing is waited for.
    #[expect(
        clippy::unused_async,
        reason = "an adaptor of the bus may come to wait for room"
    )]
    pub async fn publish(&self, events: &[Event]) {
        for event in events {
            if let Err(error) = self.try_publish(event) {
                self.shared.meters.unpublished.increment(1);
                let (topic, seq) = (&event.topic, event.seq);
                tracing::debug!(topic, seq, %error, "an event was not published");
            }
        }
    }

    /// Closes connections of a user on all replicas, with the code 3000, "Unauthorized".
    ///
    /// Their credentials must have ended in the storage before.
    pub fn end_connections(&self, user: Id, scope: Scope) {
        let ended = Ended { user, scope };
        sessions::publish(&self.bus, &self.shared.connections, &ended);
    }

    /// Turns a connection into a client of the feed. The caller has checked the watcher, and the
    /// origin of the page that connects.
    pub fn connect(&self, watcher: Option<Watcher>, upgrade: WebSocketUpgrade) -> Response {
        let settings = WebSocketSettings::default()
            .outbox(OUTBOX_FRAMES)
            .frame_bytes_max(COMMAND_BYTES_MAX);
        let shared = Arc::clone(&self.shared);
        websocket(upgrade, &self.system, &settings, move |outbox| {
            Client::new(Arc::clone(&shared), watcher.clone(), outbox)
        })
    }

    fn try_publish(&self, event: &Event) -> Result<(), PublishError> {
        self.bus
            .try_publish(event.topic.as_str(), frame::text_of(event))
            .map(drop)
    }
}
