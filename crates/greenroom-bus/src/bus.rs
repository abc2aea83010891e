use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::core::{Adaptor, Core, SubscribeError};
use crate::nats::Nats;
use crate::redis::Redis;
use crate::remote::AnyRemote;
use crate::subscription::Receiver;
use crate::{
    Accepted, ConnectionState, NatsSettings, Pattern, PublishError, QueueSettings, RedisSettings,
    Sink, SinkSubscription, Status, Subscription, Topic, TopicError,
};

/// A set of topics to publish to and to subscribe to. Cheap to clone. It ends with its last clone:
/// its subscriptions give what they have queued and end too.
///
/// It needs no runtime of its own: publish and subscribe from any thread and any executor.
#[derive(Clone)]
pub struct Bus(Arc<Handle>);

struct Handle {
    core: Arc<Core>,
}

impl Bus {
    /// Creates a bus within this process.
    #[must_use]
    pub fn in_process() -> Self {
        Self::new(Arc::new(Core::new(Adaptor::InProcess)))
    }

    /// Creates a bus through Redis, shared by all processes that are connected to the same server.
    /// It connects in the background, and again whenever the connection is lost, so that a program
    /// starts also while Redis is away; [`connected`](Self::connected) waits for it. All its work
    /// runs on one thread of its own.
    ///
    /// # Errors
    /// The system gives no thread, or no I/O driver for it.
    pub fn redis(settings: RedisSettings) -> io::Result<Self> {
        let redis = Arc::new(Redis::new(settings));
        let core = Arc::new(Core::new(Adaptor::Redis(Arc::clone(&redis))));
        crate::redis::start(Arc::clone(&core), redis)?;
        Ok(Self::new(core))
    }

    /// Creates a bus through NATS, shared by all processes that are connected to the same server or
    /// cluster and use the same [prefix](NatsSettings::prefix). It connects as
    /// [`redis`](Self::redis) does.
    ///
    /// # Errors
    /// The system gives no thread, or no I/O driver for it.
    pub fn nats(settings: NatsSettings) -> io::Result<Self> {
        let nats = Arc::new(Nats::new(settings));
        let core = Arc::new(Core::new(Adaptor::Nats(Arc::clone(&nats))));
        crate::nats::start(Arc::clone(&core), nats)?;
        Ok(Self::new(core))
    }

    fn new(core: Arc<Core>) -> Self {
        Self(Arc::new(Handle { core }))
    }

    /// Waits until the bus is connected. In-process it always is. Put a time-out around it. For a
    /// single subscription see [`Subscription::established`].
    pub async fn connected(&self) {
        if let Some(remote) = self.core().adaptor.remote() {
            let mut state = remote.state().subscribe();
            // The sender is in the bus, so the wait cannot fail.
            let _ = state
                .wait_for(|state| *state == ConnectionState::Connected)
                .await;
        }
    }

    /// Publishes to all subscribers, here and (with a server) elsewhere.
    ///
    /// In-process it never waits. With a server it waits for the server's reply, and before that
    /// for space in the queue if many publish at once; while the server is away it does not wait at
    /// all, but fails or queues, as [`WhileAway`](crate::WhileAway) says. Dropping the future does
    /// not take back a message that is queued.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub async fn publish(
        &self,
        topic: impl TryInto<Topic, Error: Into<TopicError>>,
        payload: impl Into<Bytes>,
    ) -> Result<Accepted, PublishError> {
        let (topic, payload) = self.check(topic, payload)?;
        match self.core().adaptor.remote() {
            None => Ok(self.publish_here(topic, payload)),
            Some(remote) => remote.outbox().publish(topic, payload).await,
        }
    }

    /// Publishes as [`publish`](Self::publish) does, without waiting: with a server,
    /// [`Accepted::Queued`] says that the message will be sent. If that fails, it is counted in
    /// [`Status`] and logged.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn try_publish(
        &self,
        topic: impl TryInto<Topic, Error: Into<TopicError>>,
        payload: impl Into<Bytes>,
    ) -> Result<Accepted, PublishError> {
        let (topic, payload) = self.check(topic, payload)?;
        match self.core().adaptor.remote() {
            None => Ok(self.publish_here(topic, payload)),
            Some(remote) => remote.outbox().try_publish(topic, payload),
        }
    }

    /// Publishes a value as JSON: see [`publish`](Self::publish).
    ///
    /// # Errors
    /// See [`PublishError`].
    #[cfg(feature = "json")]
    pub async fn publish_json<T: serde::Serialize + ?Sized>(
        &self,
        topic: impl TryInto<Topic, Error: Into<TopicError>>,
        value: &T,
    ) -> Result<Accepted, PublishError> {
        let topic = topic.try_into().map_err(Into::into)?;
        let payload = crate::json::encode(&topic, value)?;
        self.publish(topic, payload).await
    }

    /// Subscribes to a topic, or to a pattern such as `/picture/*/likes`, with a queue of
    /// [`EVENTS_MAX`](crate::EVENTS_MAX) messages that drops the oldest when it is full. With a
    /// server it takes effect after a moment: see [`Subscription::established`].
    ///
    /// # Errors
    /// See [`SubscribeError`].
    pub fn subscribe(
        &self,
        pattern: impl TryInto<Pattern, Error: Into<TopicError>>,
    ) -> Result<Subscription, SubscribeError> {
        self.subscribe_with(pattern, QueueSettings::default())
    }

    /// Subscribes as [`subscribe`](Self::subscribe) does, with these settings of the queue.
    ///
    /// # Errors
    /// See [`SubscribeError`].
    pub fn subscribe_with(
        &self,
        pattern: impl TryInto<Pattern, Error: Into<TopicError>>,
        settings: QueueSettings,
    ) -> Result<Subscription, SubscribeError> {
        let pattern = pattern.try_into().map_err(Into::into)?;
        let receiver = Arc::new(Receiver::queue(pattern, settings));
        self.core().join(&receiver)?;
        Ok(Subscription::new(Arc::clone(self.core()), receiver))
    }

    /// Subscribes a [`Sink`], which the bus calls with each event.
    ///
    /// # Errors
    /// See [`SubscribeError`].
    pub fn subscribe_sink(
        &self,
        pattern: impl TryInto<Pattern, Error: Into<TopicError>>,
        sink: impl Sink,
    ) -> Result<SinkSubscription, SubscribeError> {
        let pattern = pattern.try_into().map_err(Into::into)?;
        let receiver = Arc::new(Receiver::sink(pattern, sink));
        self.core().join(&receiver)?;
        Ok(SinkSubscription::new(Arc::clone(self.core()), receiver))
    }

    /// Returns the state and the counters of the bus at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        let core = self.core();
        let (subscriptions, topics, patterns) = core.table.read().sizes();
        Status {
            adaptor: core.adaptor.name(),
            subscriptions,
            topics,
            patterns,
            published: core.meters.published.read(),
            delivered: core.meters.delivered.read(),
            dropped: core.meters.dropped.read(),
            overflow_closed: core.meters.overflow_closed.read(),
            reconnect_gaps: core.meters.reconnect_gaps.read(),
            redis: match &core.adaptor {
                Adaptor::Redis(redis) => Some(redis.remote.status(&core.meters)),
                _ => None,
            },
            nats: match &core.adaptor {
                Adaptor::Nats(nats) => Some(nats.status(&core.meters)),
                _ => None,
            },
        }
    }

    fn publish_here(&self, topic: Topic, payload: Bytes) -> Accepted {
        self.core().meters.published.add(1);
        self.core().deliver(topic, payload);
        Accepted::Published
    }

    fn check(
        &self,
        topic: impl TryInto<Topic, Error: Into<TopicError>>,
        payload: impl Into<Bytes>,
    ) -> Result<(Topic, Bytes), PublishError> {
        let topic = topic.try_into().map_err(Into::into)?;
        let payload = payload.into();
        let (bytes, bytes_max) = (payload.len(), self.core().adaptor.payload_bytes_max());
        if bytes > bytes_max {
            return Err(PublishError::TooLong {
                topic,
                bytes,
                bytes_max,
            });
        }
        Ok((topic, payload))
    }

    fn core(&self) -> &Arc<Core> {
        &self.0.core
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.end();
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Bus")
            .field("adaptor", &self.core().adaptor.name())
            .finish_non_exhaustive()
    }
}
