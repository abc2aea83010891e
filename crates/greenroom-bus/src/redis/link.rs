//! The task that holds the connection.

use std::sync::Arc;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Pipeline, RedisResult, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, info, warn};

use crate::PublishError;
use crate::core::Core;
use crate::lock::lock;

use super::channels::{Change, Channel};
use super::error::LinkError;
use super::outbox::Entry;
use super::push::Pushes;
use super::{ConnectionState, Redis, RedisSettings};

/// How many topics are subscribed or unsubscribed with one round trip.
const CHANGES_MAX: usize = 512;

/// How many messages, and how many bytes of payload, are published with one round trip.
const BATCH_MESSAGES_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 1_048_576;

pub(super) struct Link {
    core: Arc<Core>,
    redis: Arc<Redis>,
}

struct Session {
    connection: MultiplexedConnection,
    lost: Arc<Notify>,
}

/// How a connection ended that nobody lost.
struct Ended;

impl Link {
    pub(super) fn new(core: Arc<Core>, redis: Arc<Redis>) -> Self {
        Self { core, redis }
    }

    /// Connects, and connects again, until the bus ends.
    pub(super) async fn run(self) {
        let mut delays = backoff(&self.redis.settings);
        loop {
            let begin = Instant::now();
            let Err(error) = self.run_once().await else {
                break;
            };
            if self.is_connected() && begin.elapsed() > self.redis.settings.backoff_max {
                delays = backoff(&self.redis.settings);
            }
            let delay = delays.next().unwrap_or(self.redis.settings.backoff_max);
            self.note(&error, delay);
            tokio::select! {
                biased;
                () = self.redis.ended() => break,
                () = sleep(delay) => {}
            }
        }
    }

    /// One connection, from the first try to its loss.
    async fn run_once(&self) -> Result<Ended, LinkError> {
        let session = tokio::select! {
            biased;
            () = self.redis.ended() => return Ok(Ended),
            session = self.open() => session?,
        };
        self.serve(session).await
    }

    async fn open(&self) -> Result<Session, LinkError> {
        let lost = Arc::new(Notify::new());
        let settings = &self.redis.settings;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(settings.connect_timeout))
            .set_response_timeout(Some(settings.command_timeout))
            .set_push_sender(Pushes {
                core: Arc::clone(&self.core),
                redis: Arc::clone(&self.redis),
                lost: Arc::clone(&lost),
            });
        let client = &settings.client;
        let connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        self.redis.outbox.come_back();
        let connected = ConnectionState::Connected;
        self.redis.state.send_replace(connected);
        info!(address = %client.get_connection_info().addr(), "connected to Redis");
        Ok(Session { connection, lost })
    }

    async fn serve(&self, mut session: Session) -> Result<Ended, LinkError> {
        let connection = &mut session.connection;
        // Before what waits to be published, so that our own subscribers hear that too.
        self.subscribe(connection).await?;
        let mut pings = interval(self.redis.settings.ping_interval);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = session.lost.notified() => return Err(LinkError::Closed),
                () = self.redis.ended() => {
                    while self.publish(connection).await? {}
                    return Ok(Ended);
                }
                () = self.redis.channels.changed.notified() => self.subscribe(connection).await?,
                () = self.redis.outbox.filled.notified() => {
                    self.publish(connection).await?;
                }
                _ = pings.tick() => {
                    redis::cmd("PING").query_async::<Value>(connection).await?;
                }
            }
        }
    }

    /// Asks the server for what is wanted and was not asked for.
    async fn subscribe(&self, connection: &mut MultiplexedConnection) -> Result<(), LinkError> {
        loop {
            let changes = self.redis.channels.next_changes(CHANGES_MAX);
            if changes.is_empty() {
                return Ok(());
            }
            let mut pipeline = Pipeline::with_capacity(changes.len());
            for change in &changes {
                let (command, channel) = request(change);
                pipeline.cmd(command).arg(&*channel.name);
            }
            let answers = query(&mut pipeline, connection).await?;
            for (change, answer) in changes.iter().zip(answers) {
                if let (Change::Subscribe(channel), Err(error)) = (change, answer) {
                    warn!(channel = %channel.name, %error, "Redis refused a subscription");
                    let reason = error.to_string().into();
                    self.redis.channels.refuse(channel, &reason, &self.core);
                }
            }
        }
    }

    /// Sends what waits, up to one batch. Says whether there was something.
    async fn publish(&self, connection: &mut MultiplexedConnection) -> Result<bool, LinkError> {
        let batch = self
            .redis
            .outbox
            .next_batch(BATCH_MESSAGES_MAX, BATCH_BYTES_MAX);
        if batch.is_empty() {
            return Ok(false);
        }
        let command = if self.redis.settings.is_sharded {
            "SPUBLISH"
        } else {
            "PUBLISH"
        };
        let mut pipeline = Pipeline::with_capacity(batch.len());
        for entry in &batch {
            pipeline
                .cmd(command)
                .arg(entry.topic.as_str())
                .arg(&*entry.payload);
        }
        match query(&mut pipeline, connection).await {
            Ok(answers) => {
                for (entry, answer) in batch.into_iter().zip(answers) {
                    self.settle(entry, answer);
                }
                Ok(true)
            }
            Err(error) => {
                for entry in batch {
                    self.fail(entry, PublishError::Unknown);
                }
                Err(error.into())
            }
        }
    }

    fn settle(&self, entry: Entry, answer: RedisResult<Value>) {
        match answer {
            Ok(_) => {
                self.core.meters.published.add(1);
                entry.succeed();
            }
            Err(error) => {
                let reason = error.to_string();
                self.fail(entry, PublishError::Refused { reason });
            }
        }
    }

    fn fail(&self, entry: Entry, error: PublishError) {
        self.core.meters.publish_failed.add(1);
        debug!(topic = %entry.topic, %error, "a message was not published");
        entry.fail(error);
    }

    fn note(&self, error: &LinkError, delay: std::time::Duration) {
        *lock(&self.redis.last_error) = Some(error.to_string());
        let millis = delay.as_millis();
        if self.is_connected() {
            warn!(%error, retry_millis = millis, "the connection to Redis is lost");
            self.core.meters.connections_lost.add(1);
            self.go_away(ConnectionState::Away);
        } else {
            debug!(%error, retry_millis = millis, "Redis cannot be reached");
            self.redis.channels.lost();
        }
    }

    fn is_connected(&self) -> bool {
        *self.redis.state.borrow() == ConnectionState::Connected
    }

    fn go_away(&self, state: ConnectionState) {
        self.redis.state.send_replace(state);
        self.redis.channels.lost();
        let given_up = self.redis.outbox.go_away();
        self.core.meters.publish_failed.add(given_up as u64);
    }
}

/// Also if a panic ends the task: then nobody waits for it in vain.
impl Drop for Link {
    fn drop(&mut self) {
        self.go_away(ConnectionState::Ended);
    }
}

fn backoff(settings: &RedisSettings) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(settings.backoff_min)
        .with_max_delay(settings.backoff_max)
        .without_max_times()
        .with_jitter()
        .build()
}

fn request(change: &Change) -> (&'static str, &Channel) {
    match change {
        Change::Subscribe(channel) => (channel.kind.subscribe(), channel),
        Change::Unsubscribe(channel) => (channel.kind.unsubscribe(), channel),
    }
}

/// The server's answer to each command, or what happened to the connection.
async fn query(
    pipeline: &mut Pipeline,
    connection: &mut MultiplexedConnection,
) -> RedisResult<Vec<RedisResult<Value>>> {
    pipeline.ignore_errors().query_async(connection).await
}
