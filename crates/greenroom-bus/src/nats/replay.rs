//! The stream that holds the bus' messages, and its consumer.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::Client;
use async_nats::datetime::DateTime;
use async_nats::jetstream::consumer::push::{Config as ConsumerConfig, Messages};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy};
use async_nats::jetstream::context::{
    ContextBuilder, PublishAckFuture, PublishError, PublishErrorKind,
};
use async_nats::jetstream::stream::{
    Config, ConsumerError, DiscardPolicy, RawMessageError, RawMessageErrorKind, RetentionPolicy,
    StorageType, Stream,
};
use async_nats::jetstream::{Context, Message as Stored};
use futures_util::StreamExt;
use tokio::task::coop;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::core::Core;
use crate::remote::Entry;

use super::signals::{EndsWithPanic, Signals};
use super::{LinkError, Nats, ReplaySettings};

/// The shortest interval of a consumer's signs of life that the server allows.
const HEARTBEAT_MIN: Duration = Duration::from_millis(100);

/// The time for which the server keeps a consumer that nobody listens to.
const CONSUMER_IDLE: Duration = Duration::from_secs(30);

/// The pause between looks at a stream that is behind.
const REACH_INTERVAL: Duration = Duration::from_millis(50);

/// The place in a stream up to which messages were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) sequence: u64,
    /// The time at which the stream got the message of that number.
    time: DateTime,
    /// The time up to which everything was received before the stream lost its end, as long as
    /// what it has up to then is still coming.
    seen: Option<DateTime>,
}

impl Position {
    /// Returns the time up to which everything was received, if the numbers do not tell: of a
    /// stream that is another, or was so a short while ago.
    fn seen(self, is_another: bool) -> Option<DateTime> {
        let latest = is_another.then_some(self.time);
        self.seen.max(latest)
    }
}

/// The consumer of one connection. It gets every message of the stream from the position on, in
/// order, and sends each to the subscriptions that match.
pub(super) struct Replay {
    context: Context,
    is_live: Arc<AtomicBool>,
}

impl Replay {
    pub(super) async fn open(
        settings: &ReplaySettings,
        core: &Arc<Core>,
        nats: &Arc<Nats>,
        client: &Client,
        signals: &Arc<Signals>,
    ) -> Result<Self, LinkError> {
        let command_timeout = nats.remote.settings.command_timeout;
        let context = ContextBuilder::new()
            .timeout(command_timeout)
            .ack_timeout(command_timeout)
            .build(client.clone());
        let fault = |error: &dyn Display| settings.fault(error);
        let position = *nats.position.lock();
        let stream = settings.find(&context, nats, position).await?;
        let is_another = match position {
            None => false,
            Some(position) => self::is_another(position, &stream)
                .await
                .map_err(|error| fault(&error))?,
        };
        let is_live = Arc::new(AtomicBool::new(false));
        let state = &stream.cached_info().state;
        let last = state.last_sequence;
        let begin = match position {
            None => last + 1,
            Some(_) if is_another => state.first_sequence.max(1),
            Some(position) => position.sequence + 1,
        };
        let reader = Reader {
            core: Arc::clone(core),
            nats: Arc::clone(nats),
            signals: Arc::clone(signals),
            is_live: Arc::clone(&is_live),
            seen: position.and_then(|position| position.seen(is_another)),
            last,
            has_holes: state.deleted_count.is_some_and(|deleted| deleted > 0),
            consumed: 0,
        };
        let is_empty = state.messages == 0 || state.first_sequence > last;
        reader.note(
            begin - 1,
            position.map_or(state.last_timestamp, |position| position.time),
        );
        if is_another {
            core.notify_reconnected();
        }
        let consumer = consumer(&stream, client.new_inbox(), begin, nats).await;
        let consumer = consumer.map_err(|error| fault(&error))?;
        let has_nothing = reader.has_holes && consumer.cached_info().num_pending == 0;
        let messages = consumer.messages().await;
        let messages = messages.map_err(|error| fault(&error))?;
        if is_empty {
            reader.skip_to(last + 1);
        }
        if is_empty || has_nothing || begin > last {
            reader.go_live();
        }
        tokio::spawn(coop::unconstrained(reader.run(messages, stream)));
        Ok(Self { context, is_live })
    }

    /// Sends messages, to be stored. Their acknowledgements are still to come.
    pub(super) async fn publish(&self, batch: &[Entry], subjects: &[String]) -> Vec<Sent> {
        let mut sent = Vec::new();
        for (entry, subject) in batch.iter().zip(subjects) {
            let payload = entry.payload.clone();
            sent.push(Sent(self.context.publish(subject.clone(), payload).await));
        }
        sent
    }

    /// Returns `true` once what was missed is delivered: from then on subscriptions can join.
    pub(super) fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }
}

/// A message on its way to the stream.
pub(super) struct Sent(Result<PublishAckFuture, PublishError>);

/// The stream's word about a message.
pub(super) enum Ack {
    Stored,
    /// The stream will not have it.
    Refused(crate::PublishError),
    /// No stream was there to take it.
    Undone,
    Unknown,
}

impl Sent {
    pub(super) async fn ack(self) -> Ack {
        let outcome = match self.0 {
            Ok(ack) => ack.await,
            Err(error) => Err(error),
        };
        let Err(error) = outcome else {
            return Ack::Stored;
        };
        match error.kind() {
            PublishErrorKind::StreamNotFound => Ack::Undone,
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => Ack::Unknown,
            _ => Ack::Refused(crate::PublishError::Refused {
                reason: error.to_string(),
            }),
        }
    }
}

async fn consumer(
    stream: &Stream,
    deliver_subject: String,
    start_sequence: u64,
    nats: &Nats,
) -> Result<Consumer<ConsumerConfig>, ConsumerError> {
    let config = ConsumerConfig {
        deliver_subject,
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
        ack_policy: AckPolicy::None,
        // So that the server waits for a consumer that falls behind.
        flow_control: true,
        idle_heartbeat: nats.remote.settings.ping_interval.max(HEARTBEAT_MIN),
        inactive_threshold: CONSUMER_IDLE,
        num_replicas: 1,
        memory_storage: true,
        ..ConsumerConfig::default()
    };
    stream.create_consumer(config).await
}

/// Waits until the stream has all that was received from it. A server that has just become its
/// leader may be behind for a moment.
async fn reach(position: Position, stream: &mut Stream) {
    while stream.cached_info().state.last_sequence < position.sequence {
        sleep(REACH_INTERVAL).await;
        // It may have no leader at this moment.
        let _ = stream.info().await;
    }
}

/// Returns `true` if the stream is another one, or has lost its end, so that its numbers are not
/// those of before. When it was created is no sign: two servers of a cluster may differ in that.
async fn is_another(position: Position, stream: &Stream) -> Result<bool, RawMessageError> {
    let state = &stream.cached_info().state;
    if position.sequence > state.last_sequence {
        return Ok(true);
    }
    if position.sequence < state.first_sequence.max(1) {
        return Ok(false);
    }
    match stream.get_raw_message(position.sequence).await {
        Ok(message) => Ok(message.time != position.time),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Checks that a stream that was there already holds what the bus publishes and nothing else: a
/// number that is missing is then a message that was deleted.
fn check(config: &Config, subjects: &str) -> Result<(), String> {
    if config.subjects != [subjects] {
        return Err(format!(
            "it holds the subjects {:?}, and must hold `{subjects}` only",
            config.subjects
        ));
    }
    if config.retention != RetentionPolicy::Limits {
        return Err(format!(
            "its retention is {:?}, and must be by limits",
            config.retention
        ));
    }
    Ok(())
}

impl ReplaySettings {
    /// Finds the stream, or makes it, and waits until it has all that was received from it.
    async fn find(
        &self,
        context: &Context,
        nats: &Nats,
        position: Option<Position>,
    ) -> Result<Stream, LinkError> {
        let subjects = nats.names.all();
        let found = context.get_or_create_stream(self.config(subjects.clone()));
        let mut stream = found.await.map_err(|error| self.fault(&error))?;
        check(&stream.cached_info().config, &subjects).map_err(|reason| self.fault(&reason))?;
        if let Some(position) = position {
            let command_timeout = nats.remote.settings.command_timeout;
            // If it does not get there, it is found to have lost its end.
            let _ = timeout(command_timeout, reach(position, &mut stream)).await;
        }
        Ok(stream)
    }

    fn fault(&self, error: &dyn Display) -> LinkError {
        LinkError::Stream {
            stream: self.stream.clone(),
            reason: error.to_string(),
        }
    }

    fn config(&self, subjects: String) -> Config {
        Config {
            name: self.stream.clone(),
            subjects: vec![subjects],
            max_bytes: i64::try_from(self.max_bytes).unwrap_or(i64::MAX),
            max_age: self.max_age,
            discard: DiscardPolicy::Old,
            retention: RetentionPolicy::Limits,
            num_replicas: self.replicas,
            storage: if self.is_in_memory {
                StorageType::Memory
            } else {
                StorageType::File
            },
            ..Config::default()
        }
    }
}

/// The task that takes the messages of a consumer.
struct Reader {
    core: Arc<Core>,
    nats: Arc<Nats>,
    signals: Arc<Signals>,
    is_live: Arc<AtomicBool>,
    /// The time up to which everything was received, if the numbers do not tell.
    seen: Option<DateTime>,
    /// The last sequence number of the stream when the connection was made.
    last: u64,
    /// `true` if messages between others were deleted: then the last number may be none's.
    has_holes: bool,
    /// The number of messages that the consumer has sent.
    consumed: u64,
}

impl Reader {
    async fn run(mut self, mut messages: Messages, stream: Stream) {
        let _guard = EndsWithPanic(Arc::clone(&self.signals));
        loop {
            let message = tokio::select! {
                biased;
                message = messages.next() => message,
                () = self.loses_rest(&stream), if !self.is_live() => {
                    self.skip_to(self.last + 1);
                    self.go_live();
                    continue;
                }
            };
            let Some(message) = message else {
                self.signals.end(LinkError::Closed);
                return;
            };
            if self.signals.is_over() {
                return;
            }
            let taken = match message {
                Ok(message) => self.take(&message),
                // No sign of life: the consumer's server is gone.
                Err(_) => Err(LinkError::TimedOut),
            };
            if let Err(error) = taken {
                self.signals.end(error);
                return;
            }
        }
    }

    /// Waits until the stream has lost the rest of what was missed, by age or by a purge: nothing
    /// comes then that would tell. It looks when no message has come for a while.
    async fn loses_rest(&self, stream: &Stream) {
        loop {
            sleep(self.nats.remote.settings.ping_interval).await;
            let info = stream.get_info().await;
            if info.is_ok_and(|info| info.state.first_sequence > self.last) {
                return;
            }
        }
    }

    fn take(&mut self, message: &Stored) -> Result<(), LinkError> {
        let info = message.info().map_err(|_| LinkError::OutOfStep)?;
        self.consumed += 1;
        if info.consumer_sequence != self.consumed {
            return Err(LinkError::OutOfStep);
        }
        // A server that is behind the stream's leader may begin too early.
        if info.stream_sequence > self.sequence() {
            self.skip_to(info.stream_sequence);
            if self.seen.is_none_or(|seen| info.published > seen) {
                self.seen = None;
                self.deliver(message);
            }
            self.note(info.stream_sequence, info.published);
        }
        if info.stream_sequence >= self.last || (self.has_holes && info.pending == 0) {
            self.go_live();
        }
        Ok(())
    }

    fn deliver(&self, message: &Stored) {
        let subject = &message.subject;
        let Some(topic) = self.nats.names.topic(subject) else {
            debug!(%subject, "the stream holds what is no topic of ours");
            return;
        };
        let payload = message.payload.clone();
        if self.is_live() {
            self.core.deliver(topic, payload);
        } else {
            self.core.meters.replayed.add(1);
            self.core.deliver_to_established(topic, payload);
        }
    }

    /// Tells of a gap if messages before this one are no longer in the stream.
    fn skip_to(&self, sequence: u64) {
        let Some(position) = *self.nats.position.lock() else {
            return;
        };
        if sequence > position.sequence + 1 {
            self.core.notify_reconnected();
            self.note(sequence - 1, position.time);
        }
    }

    fn sequence(&self) -> u64 {
        let position = self.nats.position.lock();
        position.map_or(0, |position| position.sequence)
    }

    fn note(&self, sequence: u64, time: DateTime) {
        let seen = self.seen;
        let position = Position {
            sequence,
            time,
            seen,
        };
        *self.nats.position.lock() = Some(position);
    }

    fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Relaxed)
    }

    /// Lets subscriptions join, once.
    fn go_live(&self) {
        if !self.is_live.swap(true, Ordering::AcqRel) {
            self.nats.remote.channels.changed.notify_one();
        }
    }
}
