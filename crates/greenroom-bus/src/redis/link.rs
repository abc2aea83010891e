//! The task that holds the connection.

use std::sync::Arc;

use redis::Value;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tracing::{info, warn};

use crate::PublishError;
use crate::core::Core;
use crate::remote::{Change, Ended, Entry};

use super::Redis;
use super::channel::Kind;
use super::connection::{Command, Connection, Outcome};
use super::error::LinkError;
use super::push::{Pushes, Signals};

/// The most topics that are subscribed or unsubscribed with one round trip.
const CHANGES_MAX: usize = 512;

/// The most messages, and the most bytes of payload, that are published with one round trip.
const BATCH_MESSAGES_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 1_048_576;

pub(super) struct Link {
    core: Arc<Core>,
    redis: Arc<Redis>,
}

struct Session {
    connection: Connection,
    signals: Arc<Signals>,
}

impl Link {
    pub(super) fn new(core: Arc<Core>, redis: Arc<Redis>) -> Self {
        Self { core, redis }
    }

    /// Runs one connection, from the first try to its loss.
    pub(super) async fn run(&self) -> Result<Ended, LinkError> {
        let session = tokio::select! {
            biased;
            () = self.redis.remote.ended() => return Ok(Ended),
            session = self.open() => session?,
        };
        self.serve(session).await
    }

    async fn open(&self) -> Result<Session, LinkError> {
        let signals = Arc::new(Signals::default());
        let pushes = Pushes {
            core: Arc::clone(&self.core),
            redis: Arc::clone(&self.redis),
            signals: Arc::clone(&signals),
        };
        let (connection, address) = Connection::open(&self.redis.settings, pushes).await?;
        self.redis.remote.come_up();
        info!(address, "connected to Redis");
        Ok(Session {
            connection,
            signals,
        })
    }

    async fn serve(&self, mut session: Session) -> Result<Ended, LinkError> {
        let connection = &mut session.connection;
        let remote = &self.redis.remote;
        // Before the waiting messages are published, so that this bus' own subscribers get those
        // too.
        self.subscribe(connection).await?;
        let every = remote.settings.ping_interval;
        let mut pings = interval_at(Instant::now() + every, every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = session.signals.closed.notified() => return Err(LinkError::Closed),
                () = session.signals.moved.notified() => return Err(LinkError::Moved),
                () = remote.ended() => {
                    while self.publish(connection).await? {}
                    return Ok(Ended);
                }
                () = remote.channels.changed.notified() => {
                    if self.subscribe_some(connection).await? {
                        remote.channels.changed.notify_one();
                    }
                    // Subscriptions that come and go all the time must not keep it waiting.
                    self.publish(connection).await?;
                }
                () = remote.outbox.filled.notified() => {
                    self.publish(connection).await?;
                }
                _ = pings.tick() => connection.ping().await?,
            }
        }
    }

    /// Sends the requests that are due. Those that come meanwhile have their turn later.
    async fn subscribe(&self, connection: &mut Connection) -> Result<(), LinkError> {
        let channels = &self.redis.remote.channels;
        for _ in 0..=channels.due() / CHANGES_MAX {
            if !self.subscribe_some(connection).await? {
                return Ok(());
            }
        }
        channels.changed.notify_one();
        Ok(())
    }

    /// Sends the requests that are due, up to one batch. Returns `true` if more may be.
    async fn subscribe_some(&self, connection: &mut Connection) -> Result<bool, LinkError> {
        let channels = &self.redis.remote.channels;
        let changes = channels.next_changes(CHANGES_MAX);
        if changes.is_empty() {
            return Ok(false);
        }
        let commands: Vec<_> = changes.iter().map(command).collect();
        let outcomes = connection.query(&commands).await;
        for (change, outcome) in changes.iter().zip(outcomes) {
            match (change, outcome) {
                (Change::Subscribe(channel), Outcome::Refused(error)) => {
                    warn!(channel = %channel.name, %error, "Redis refused a subscription");
                    channels.refuse(channel, &error.to_string().into(), &self.core);
                }
                (_, Outcome::Undone(error) | Outcome::Unknown(error)) => {
                    return Err(error.into());
                }
                (Change::Unsubscribe(_), Outcome::Refused(_)) | (_, Outcome::Done(_)) => {}
            }
        }
        Ok(changes.len() == CHANGES_MAX)
    }

    /// Sends waiting messages, up to one batch. Returns `true` if there were any.
    async fn publish(&self, connection: &mut Connection) -> Result<bool, LinkError> {
        let batch = self
            .redis
            .remote
            .outbox
            .next_batch(BATCH_MESSAGES_MAX, BATCH_BYTES_MAX);
        if batch.is_empty() {
            return Ok(false);
        }
        let name = if self.redis.settings.is_sharded {
            "SPUBLISH"
        } else {
            "PUBLISH"
        };
        let command = |entry| message(name, entry);
        let commands: Vec<_> = batch.iter().map(command).collect();
        let outcomes = connection.query(&commands).await;
        drop(commands);
        let mut failure = None;
        let mut undone = Vec::new();
        for (entry, outcome) in batch.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Undone(error) => {
                    undone.push(entry);
                    failure = Some(error.into());
                }
                outcome => failure = self.settle(entry, outcome).err().or(failure),
            }
        }
        self.redis.remote.outbox.give_back(undone);
        failure.map_or(Ok(true), Err)
    }

    /// Settles one message. An error is the connection's.
    fn settle(&self, entry: Entry, outcome: Outcome) -> Result<(), LinkError> {
        match outcome {
            // The number of receivers.
            Outcome::Done(Value::Int(_)) => {
                self.core.meters.published.add(1);
                entry.succeed();
                Ok(())
            }
            Outcome::Refused(error) => {
                let reason = error.to_string();
                self.core
                    .meters
                    .fail(entry, PublishError::Refused { reason });
                Ok(())
            }
            // An unsolicited confirmation was taken for the reply.
            Outcome::Done(_) => {
                self.core.meters.fail(entry, PublishError::Unknown);
                Err(LinkError::OutOfStep)
            }
            Outcome::Undone(error) | Outcome::Unknown(error) => {
                self.core.meters.fail(entry, PublishError::Unknown);
                Err(error.into())
            }
        }
    }
}

fn command(change: &Change<Kind>) -> Command<'_> {
    let (name, channel) = match change {
        Change::Subscribe(channel) => (channel.kind.subscribe(), channel),
        Change::Unsubscribe(channel) => (channel.kind.unsubscribe(), channel),
    };
    Command {
        name,
        channel: &channel.name,
        payload: None,
    }
}

fn message<'a>(name: &'static str, entry: &'a Entry) -> Command<'a> {
    Command {
        name,
        channel: entry.topic.as_str(),
        payload: Some(&entry.payload),
    }
}
