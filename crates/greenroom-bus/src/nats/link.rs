//! The task that holds the connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_nats::{Client, Subject, Subscriber};
use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tracing::{info, warn};

use crate::core::Core;
use crate::remote::{Change, Channel, Ended, Entry};
use crate::{PAYLOAD_BYTES_MAX, Pattern, PublishError};

use super::feed::Feed;
use super::replay::{Ack, Replay};
use super::signals::{Complaint, Signals};
use super::subject::Kind;
use super::{LinkError, Nats};

/// The most subjects that are subscribed or unsubscribed with one round trip. The client keeps 128
/// of the server's complaints until they are read.
const CHANGES_MAX: usize = 64;

/// The most messages, and the most bytes of payload, that are published with one round trip.
const BATCH_MESSAGES_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 1_048_576;

struct Link {
    core: Arc<Core>,
    nats: Arc<Nats>,
    client: Client,
    signals: Arc<Signals>,
    /// The subject and the subscription by which the bus hears itself: what it hears, the server
    /// has dealt with all before.
    inbox: Subject,
    echoes: Subscriber,
    rounds: u64,
    feeds: HashMap<Arc<str>, AbortHandle>,
    replay: Option<Replay>,
}

/// Runs one connection, from the first try to its loss.
pub(super) async fn run(core: Arc<Core>, nats: Arc<Nats>) -> Result<Ended, LinkError> {
    // As a task among the client's, all of which take their turn: what the server said before an
    // echo is noted before the echo is seen.
    let link = tokio::spawn(connect(core, nats));
    link.await
        .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

async fn connect(core: Arc<Core>, nats: Arc<Nats>) -> Result<Ended, LinkError> {
    let link = tokio::select! {
        biased;
        () = nats.remote.ended() => return Ok(Ended),
        link = Link::open(core, Arc::clone(&nats)) => link?,
    };
    link.serve().await
}

impl Link {
    async fn open(core: Arc<Core>, nats: Arc<Nats>) -> Result<Self, LinkError> {
        let signals = Arc::new(Signals::default());
        let options = nats.settings.options(&signals)?;
        let mut servers = nats.settings.servers.addresses.clone();
        servers.extend(nats.discovered.lock().iter().cloned());
        let client = options.connect(servers).await?;
        signals.connected();
        let inbox = Subject::from(client.new_inbox());
        let subscribed = client.subscribe(inbox.clone()).await;
        let mut link = Self {
            echoes: subscribed.map_err(|_| LinkError::Closed)?,
            core,
            nats,
            client,
            signals,
            inbox,
            rounds: 0,
            feeds: HashMap::new(),
            replay: None,
        };
        let address = link.note_server().await;
        link.check()?;
        link.round().await.and_then(refuse_any)?;
        if let Some(settings) = &link.nats.settings.replay {
            let opened = Replay::open(
                settings,
                &link.core,
                &link.nats,
                &link.client,
                &link.signals,
            );
            link.replay = Some(link.explain(opened.await)?);
        }
        link.nats.remote.come_up();
        info!(address, "connected to NATS");
        Ok(link)
    }

    /// Notes what the server says of itself. Returns its address.
    async fn note_server(&self) -> String {
        let info = self.client.server_info();
        let bytes_max = self.client.max_payload().min(PAYLOAD_BYTES_MAX);
        let nats = &self.nats;
        nats.payload_bytes_max.store(bytes_max, Ordering::Relaxed);
        let urls = info.connect_urls.iter();
        *nats.discovered.lock() = urls.filter_map(|url| url.parse().ok()).collect();
        let pool = self.client.server_pool().await.unwrap_or_default();
        let own = pool.into_iter().find(|server| server.did_connect);
        let address = own.map_or_else(
            || info.server_name.clone(),
            |server| format!("{}:{}", server.addr.host(), server.addr.port()),
        );
        *nats.server.lock() = Some(address.clone());
        address
    }

    /// Prefers the server's own words, such as those about a missing right, to a time-out.
    fn explain<T>(&self, outcome: Result<T, LinkError>) -> Result<T, LinkError> {
        let complaints = self.signals.take_complaints();
        outcome.or_else(|error| refuse_any(complaints).and(Err(error)))
    }

    async fn serve(mut self) -> Result<Ended, LinkError> {
        let nats = Arc::clone(&self.nats);
        let remote = &nats.remote;
        // Before the waiting messages are published, so that this bus' own subscribers get those
        // too.
        self.subscribe().await?;
        let every = remote.settings.ping_interval;
        let mut pings = interval_at(Instant::now() + every, every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let signals = Arc::clone(&self.signals);
        loop {
            tokio::select! {
                biased;
                error = signals.over() => return Err(error),
                () = signals.complained.notified() => self.check()?,
                () = remote.ended() => {
                    while self.publish().await? {}
                    return Ok(Ended);
                }
                () = remote.channels.changed.notified() => {
                    if self.subscribe_some().await? {
                        remote.channels.changed.notify_one();
                    }
                    // Subscriptions that come and go all the time must not keep it waiting.
                    self.publish().await?;
                }
                () = remote.outbox.filled.notified() => {
                    self.publish().await?;
                }
                _ = pings.tick() => self.round().await.and_then(refuse_any)?,
            }
        }
    }

    /// Ends the connection if the server complained of what is not being waited for: it may have
    /// ended a subscription.
    fn check(&self) -> Result<(), LinkError> {
        refuse_any(self.signals.take_complaints())
    }

    /// Waits until the server has dealt with all that was sent. Returns its complaints.
    async fn round(&mut self) -> Result<Vec<Complaint>, LinkError> {
        self.rounds += 1;
        let number = self.rounds.to_string();
        let sent = self
            .client
            .publish(self.inbox.clone(), number.clone().into());
        let echo = async {
            sent.await.map_err(|_| LinkError::Closed)?;
            while let Some(echo) = self.echoes.next().await {
                if echo.payload == number {
                    return Ok(());
                }
            }
            Err(LinkError::Closed)
        };
        let command_timeout = self.nats.remote.settings.command_timeout;
        let outcome = tokio::select! {
            biased;
            error = self.signals.over() => Err(error),
            echo = timeout(command_timeout, echo) => echo.unwrap_or(Err(LinkError::TimedOut)),
        };
        // The client's task that reports complaints may have had no turn since.
        yield_now().await;
        let complaints = self.signals.take_complaints();
        match outcome {
            Ok(()) => Ok(complaints),
            Err(error) => refuse_any(complaints).and(Err(error)),
        }
    }

    /// Sends the requests that are due. Those that come meanwhile have their turn later.
    async fn subscribe(&mut self) -> Result<(), LinkError> {
        let nats = Arc::clone(&self.nats);
        let channels = &nats.remote.channels;
        for _ in 0..=channels.due() / CHANGES_MAX {
            if !self.subscribe_some().await? {
                return Ok(());
            }
        }
        channels.changed.notify_one();
        Ok(())
    }

    /// Sends the requests that are due, up to one batch. Returns `true` if more may be.
    async fn subscribe_some(&mut self) -> Result<bool, LinkError> {
        if self.replay.as_ref().is_some_and(|replay| !replay.is_live()) {
            return Ok(false);
        }
        let changes = self.nats.remote.channels.next_changes(CHANGES_MAX);
        let is_full = changes.len() == CHANGES_MAX;
        if self.replay.is_some() {
            self.confirm_replayed(&changes);
        } else {
            self.change(changes).await?;
        }
        Ok(is_full)
    }

    /// Confirms channels at once: the consumer gets every message of the stream, and tells of gaps
    /// itself.
    fn confirm_replayed(&self, changes: &[Change<Kind>]) {
        for change in changes {
            if let Change::Subscribe(channel) = change {
                let channels = &self.nats.remote.channels;
                channels.confirm(channel.kind, &channel.name, false, &self.core);
            }
        }
    }

    async fn change(&mut self, changes: Vec<Change<Kind>>) -> Result<(), LinkError> {
        let mut fresh = Vec::new();
        for change in changes {
            match change {
                Change::Unsubscribe(channel) => {
                    if let Some(feed) = self.feeds.remove(&channel.name) {
                        feed.abort();
                    }
                }
                Change::Subscribe(channel) => {
                    let subject = Subject::from(channel.name.to_string());
                    let subscribed = self.client.subscribe(subject).await;
                    fresh.push((channel, subscribed.map_err(|_| LinkError::Closed)?));
                }
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }
        let mut complaints = self.round().await?;
        for (channel, subscriber) in fresh {
            let name = &channel.name;
            let refused = take(&mut complaints, |all| all.is_of_subscription(name));
            match refused {
                Some(complaint) => self.refuse(&channel, &complaint),
                None => self.feed(channel, subscriber),
            }
        }
        refuse_any(complaints)
    }

    fn refuse(&self, channel: &Channel<Kind>, complaint: &Complaint) {
        let error = &complaint.text;
        warn!(subject = %channel.name, error, "NATS refused a subscription");
        let reason = error.as_str().into();
        self.nats
            .remote
            .channels
            .refuse(channel, &reason, &self.core);
    }

    /// Delivers what came since the server took the subscription, after the gap.
    fn feed(&mut self, channel: Channel<Kind>, subscriber: Subscriber) {
        let channels = &self.nats.remote.channels;
        let patterns = channels.patterns(channel.kind, &channel.name);
        // It is no longer wanted: the change that says so waits.
        let Some(pattern) = patterns.into_iter().next() else {
            return;
        };
        channels.confirm(channel.kind, &channel.name, true, &self.core);
        let feed = Feed {
            core: Arc::clone(&self.core),
            nats: Arc::clone(&self.nats),
            signals: Arc::clone(&self.signals),
            pattern,
            subscriber,
        };
        self.feeds.insert(channel.name, feed.spawn());
    }

    /// Sends waiting messages, up to one batch. Returns `true` if there were any.
    async fn publish(&mut self) -> Result<bool, LinkError> {
        let nats = Arc::clone(&self.nats);
        let outbox = &nats.remote.outbox;
        let batch = outbox.next_batch(BATCH_MESSAGES_MAX, BATCH_BYTES_MAX);
        if batch.is_empty() {
            return Ok(false);
        }
        let batch = self.without_long(batch);
        let subject = |entry: &Entry| nats.names.subject(&Pattern::from(&entry.topic));
        let subjects: Vec<_> = batch.iter().map(subject).collect();
        if self.replay.is_some() {
            self.store(batch, &subjects).await?;
        } else {
            self.send(batch, &subjects).await?;
        }
        Ok(true)
    }

    /// Refuses what this server takes not, though the one before it may have.
    fn without_long(&self, batch: Vec<Entry>) -> Vec<Entry> {
        let bytes_max = self.nats.payload_bytes_max();
        let is_long = |entry: &Entry| entry.payload.len() > bytes_max;
        let (long, batch): (Vec<_>, Vec<_>) = batch.into_iter().partition(is_long);
        for entry in long {
            let error = PublishError::TooLong {
                topic: entry.topic.clone(),
                bytes: entry.payload.len(),
                bytes_max,
            };
            self.core.meters.fail(entry, error);
        }
        batch
    }

    /// Publishes, and waits until the server has taken it.
    async fn send(&mut self, batch: Vec<Entry>, subjects: &[String]) -> Result<(), LinkError> {
        for (entry, subject) in batch.iter().zip(subjects) {
            let published = self.client.publish(subject.clone(), entry.payload.clone());
            // The round says the same.
            let _ = published.await;
        }
        let outcome = self.round().await;
        for (entry, subject) in batch.into_iter().zip(subjects) {
            let error = match &outcome {
                Ok(complaints) => refused(complaints, subject),
                Err(_) => Some(PublishError::Unknown),
            };
            self.settle(entry, error);
        }
        refuse_others(outcome?, subjects)
    }

    /// Publishes to the stream, and waits until it has what was published.
    async fn store(&mut self, batch: Vec<Entry>, subjects: &[String]) -> Result<(), LinkError> {
        let Some(replay) = &self.replay else {
            return Ok(());
        };
        let sent = replay.publish(&batch, subjects).await;
        // The server's complaints come before, and there is no acknowledgement of what it
        // complains of.
        let (complaints, mut failure) = match self.round().await {
            Ok(complaints) => (complaints, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let is_lost = failure.is_some();
        let acks = sent.into_iter().zip(subjects).map(|(sent, subject)| {
            let refused = refused(&complaints, subject);
            async move {
                match refused {
                    Some(error) => Ack::Refused(error),
                    None if is_lost => Ack::Unknown,
                    None => sent.ack().await,
                }
            }
        });
        let acks = join_all(acks).await;
        let is_ahead = |ack: &Ack| matches!(ack, Ack::Stored | Ack::Unknown);
        let last_ahead = acks.iter().rposition(is_ahead);
        let mut undone = Vec::new();
        for (place, (entry, ack)) in batch.into_iter().zip(acks).enumerate() {
            match ack {
                Ack::Stored => self.settle(entry, None),
                Ack::Refused(error) => self.settle(entry, Some(error)),
                Ack::Unknown => {
                    self.settle(entry, Some(PublishError::Unknown));
                    failure.get_or_insert(LinkError::TimedOut);
                }
                Ack::Undone => {
                    // Sent again, it would come after those that have overtaken it.
                    if last_ahead.is_some_and(|last| place < last) {
                        self.settle(entry, Some(PublishError::Away));
                    } else {
                        undone.push(entry);
                    }
                    failure.get_or_insert(LinkError::NoStream);
                }
            }
        }
        self.nats.remote.outbox.give_back(undone);
        failure.map_or_else(|| refuse_others(complaints, subjects), Err)
    }

    fn settle(&self, entry: Entry, error: Option<PublishError>) {
        let meters = &self.core.meters;
        if let Some(error) = error {
            meters.fail(entry, error);
        } else {
            meters.published.add(1);
            entry.succeed();
        }
    }
}

/// Returns the error of a message to this subject, if the server complained of it.
fn refused(complaints: &[Complaint], subject: &str) -> Option<PublishError> {
    let mut complaints = complaints.iter();
    let complaint = complaints.find(|complaint| complaint.is_of_publish(subject))?;
    let reason = complaint.text.clone();
    Some(PublishError::Refused { reason })
}

/// Refuses complaints that are not about messages to these subjects.
fn refuse_others(mut complaints: Vec<Complaint>, subjects: &[String]) -> Result<(), LinkError> {
    complaints.retain(|complaint| {
        let mut subjects = subjects.iter();
        !subjects.any(|subject| complaint.is_of_publish(subject))
    });
    refuse_any(complaints)
}

fn take(complaints: &mut Vec<Complaint>, is_it: impl Fn(&Complaint) -> bool) -> Option<Complaint> {
    let at = complaints.iter().position(is_it)?;
    Some(complaints.swap_remove(at))
}

fn refuse_any(complaints: Vec<Complaint>) -> Result<(), LinkError> {
    match complaints.into_iter().next() {
        Some(complaint) => Err(LinkError::Server(complaint.text)),
        None => Ok(()),
    }
}
