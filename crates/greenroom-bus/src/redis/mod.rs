//! The adaptor to Redis.

mod channel;
mod channels;
mod connection;
mod error;
mod link;
mod outbox;
mod push;
mod servers;
mod settings;

use std::io;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::core::Core;
use crate::core::SubscribeError;
use crate::meters::Meters;
use crate::subscription::Receiver;
use crate::{ConnectionState, Pattern, RedisStatus};

use channels::Channels;
use link::Link;
use outbox::Outbox;
pub use settings::{RedisSettings, SettingsError, WhileAway};

/// The name of the thread that a bus through Redis runs on.
const THREAD_NAME: &str = "bus-redis";

/// State shared by the handles of a bus and its thread.
pub(crate) struct Redis {
    settings: RedisSettings,
    channels: Channels,
    pub(crate) outbox: Outbox,
    state: watch::Sender<ConnectionState>,
    last_error: Mutex<Option<String>>,
    /// `true` once the last handle was dropped.
    has_ended: watch::Sender<bool>,
}

impl Redis {
    pub(crate) fn new(settings: RedisSettings) -> Self {
        Self {
            channels: Channels::new(settings.is_sharded),
            outbox: Outbox::new(&settings),
            state: watch::Sender::new(ConnectionState::Connecting),
            last_error: Mutex::default(),
            has_ended: watch::Sender::new(false),
            settings,
        }
    }

    pub(crate) async fn connected(&self) {
        let mut state = self.state.subscribe();
        // The sender is in `self`, so the wait cannot fail.
        let _ = state
            .wait_for(|state| *state == ConnectionState::Connected)
            .await;
    }

    /// Notes that a subscription is about to enter the table.
    pub(crate) fn enter(&self, pattern: &Pattern) -> Result<(), SubscribeError> {
        if self.settings.is_sharded && pattern.has_wildcard() {
            return Err(SubscribeError::PatternOnSharded(pattern.clone()));
        }
        self.channels.enter(pattern);
        Ok(())
    }

    /// Notes that a subscription is in the table.
    pub(crate) fn settle(&self, receiver: &Receiver) {
        self.channels.settle(receiver);
    }

    /// Notes that a subscription has left the table, or did not enter it.
    pub(crate) fn leave(&self, pattern: &Pattern) {
        self.channels.leave(pattern);
    }

    pub(crate) fn end(&self) {
        self.has_ended.send_replace(true);
    }

    /// Waits until the last handle is dropped.
    async fn ended(&self) {
        let mut has_ended = self.has_ended.subscribe();
        // The sender is in `self`, so the wait cannot fail.
        let _ = has_ended.wait_for(|has_ended| *has_ended).await;
    }

    pub(crate) fn status(&self, meters: &Meters) -> RedisStatus {
        let (publish_queue, publish_queue_bytes) = self.outbox.sizes();
        RedisStatus {
            state: *self.state.borrow(),
            connections_lost: meters.connections_lost.read(),
            last_error: self.last_error.lock().clone(),
            subscribed: self.channels.live(),
            publish_queue,
            publish_queue_bytes,
            publish_failed: meters.publish_failed.read(),
        }
    }
}

/// Starts the thread of a bus. It ends with the bus.
///
/// It is a thread of its own, because a handler that holds up its event loop would hold up all
/// deliveries there, and its pings would be late for no fault of the server.
pub(crate) fn start(core: Arc<Core>, redis: Arc<Redis>) -> io::Result<()> {
    redis.settings.servers.choose_cryptography();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let link = Link::new(core, redis);
    thread::Builder::new()
        .name(THREAD_NAME.to_owned())
        .spawn(move || runtime.block_on(link.run()))?;
    Ok(())
}
