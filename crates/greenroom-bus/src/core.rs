//! State shared by all handles of a bus: the table, the counters, and the connection to the server.

use std::sync::Arc;

use parking_lot::RwLock;
use tracing::debug;

use crate::meters::Meters;
use crate::nats::Nats;
use crate::redis::Redis;
use crate::remote::AnyRemote;
use crate::subscription::{End, Offer, Receiver};
use crate::table::{Members, Table};
use crate::{Message, PAYLOAD_BYTES_MAX, Pattern, Topic, TopicError};

/// The most subscriptions of one bus.
pub const SUBSCRIPTIONS_MAX: usize = 1_048_576;

pub(crate) struct Core {
    pub(crate) table: RwLock<Table<Receiver>>,
    pub(crate) meters: Meters,
    pub(crate) adaptor: Adaptor,
}

pub(crate) enum Adaptor {
    InProcess,
    Nats(Arc<Nats>),
    Redis(Arc<Redis>),
}

/// A subscription that was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The text is not a valid topic or pattern.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The bus publishes with sharded pub/sub, which has no patterns. Use a bus without
    /// [`sharded`](crate::RedisSettings::sharded) for the topics that need them.
    #[error("`{0}` has a wildcard, and sharded pub/sub of Redis has no patterns")]
    PatternOnSharded(Pattern),
    /// There are already [`SUBSCRIPTIONS_MAX`] subscriptions.
    #[error("the bus has {SUBSCRIPTIONS_MAX} subscriptions, and may have no more")]
    TooMany,
}

/// Counts of the outcomes of one message over all of its receivers.
#[derive(Default)]
struct Tally {
    delivered: u64,
    dropped: u64,
    gone: Vec<Arc<Receiver>>,
}

impl Core {
    pub(crate) fn new(adaptor: Adaptor) -> Self {
        let name = adaptor.name();
        Self {
            table: RwLock::new(Table::new()),
            meters: Meters::new(name),
            adaptor,
        }
    }

    pub(crate) fn join(&self, receiver: &Arc<Receiver>) -> Result<(), SubscribeError> {
        if let Adaptor::Redis(redis) = &self.adaptor {
            redis.check(receiver.pattern())?;
        }
        let Some(remote) = self.adaptor.remote() else {
            self.insert(receiver)?;
            receiver.establish();
            return Ok(());
        };
        remote.enter(receiver.pattern());
        self.insert(receiver)
            .inspect_err(|_| remote.leave(receiver.pattern()))?;
        remote.settle(receiver);
        Ok(())
    }

    fn insert(&self, receiver: &Arc<Receiver>) -> Result<(), SubscribeError> {
        let mut table = self.table.write();
        if table.sizes().0 >= SUBSCRIPTIONS_MAX {
            return Err(SubscribeError::TooMany);
        }
        table.insert(receiver.pattern(), Arc::clone(receiver));
        Ok(())
    }

    /// Removes the receiver. Returns `false`, and does nothing, if it is already removed.
    pub(crate) fn leave(&self, receiver: &Arc<Receiver>) -> bool {
        let was_there = self.table.write().remove(receiver.pattern(), receiver);
        if let (true, Some(remote)) = (was_there, self.adaptor.remote()) {
            remote.leave(receiver.pattern());
        }
        was_there
    }

    /// Delivers to all subscribers of the topic, or of a pattern that it matches.
    pub(crate) fn deliver(&self, topic: Topic, payload: bytes::Bytes) {
        let matches = self.table.read().matching(&topic);
        self.deliver_to(&matches, &Message::new(topic, payload));
    }

    /// Delivers to the subscriptions of the topic that were active before: others have not missed
    /// it.
    pub(crate) fn deliver_to_established(&self, topic: Topic, payload: bytes::Bytes) {
        let matches = self.table.read().matching(&topic);
        let message = Message::new(topic, payload);
        let receivers = matches.iter().flat_map(|members| members.iter());
        self.offer(
            receivers.filter(|receiver| receiver.is_established()),
            &message,
        );
    }

    /// Tells all active subscriptions that messages may be missing here.
    pub(crate) fn notify_reconnected(&self) {
        let all = self.table.read().all();
        let receivers = all.iter().flat_map(|members| members.iter());
        for receiver in receivers.filter(|receiver| receiver.is_established()) {
            self.notify_of_gap(receiver);
        }
    }

    /// Tells a subscription that messages may be missing here. A sink may end with that.
    pub(crate) fn notify_of_gap(&self, receiver: &Arc<Receiver>) {
        self.meters.reconnect_gaps.add(1);
        receiver.notify_reconnected();
        if receiver.ended().is_some() {
            self.part_with(receiver);
        }
    }

    pub(crate) fn deliver_to(&self, matches: &[Members<Receiver>], message: &Message) {
        self.offer(matches.iter().flat_map(|members| members.iter()), message);
    }

    fn offer<'a>(&self, receivers: impl Iterator<Item = &'a Arc<Receiver>>, message: &Message) {
        let mut tally = Tally::default();
        for receiver in receivers {
            tally.add(receiver.offer(message), receiver);
        }
        self.meters.delivered.add(tally.delivered);
        self.meters.dropped.add(tally.dropped);
        for receiver in tally.gone {
            self.part_with(&receiver);
        }
    }

    /// Returns the subscribers of this pattern itself.
    pub(crate) fn members(&self, pattern: &Pattern) -> Option<Members<Receiver>> {
        self.table.read().of(pattern)
    }

    /// Ends all subscriptions: the last handle was dropped.
    pub(crate) fn end(&self) {
        let all = std::mem::replace(&mut *self.table.write(), Table::new()).all();
        for receiver in all.iter().flat_map(|members| members.iter()) {
            receiver.end(End::BusDropped);
        }
        if let Some(remote) = self.adaptor.remote() {
            remote.end();
        }
    }

    fn part_with(&self, receiver: &Arc<Receiver>) {
        if self.leave(receiver) && receiver.ended() == Some(End::Overflow) {
            self.meters.overflow_closed.add(1);
            debug!(pattern = %receiver.pattern(), "a subscription was full and is closed");
        }
    }
}

impl Adaptor {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::InProcess => "in_process",
            Self::Nats(_) => "nats",
            Self::Redis(_) => "redis",
        }
    }

    /// Returns what is shared with the thread that holds the connection, if there is one.
    pub(crate) fn remote(&self) -> Option<&dyn AnyRemote> {
        match self {
            Self::InProcess => None,
            Self::Nats(nats) => Some(&nats.remote),
            Self::Redis(redis) => Some(&redis.remote),
        }
    }

    /// Returns the longest payload that can be published, in bytes.
    pub(crate) fn payload_bytes_max(&self) -> usize {
        match self {
            Self::InProcess | Self::Redis(_) => PAYLOAD_BYTES_MAX,
            Self::Nats(nats) => nats.payload_bytes_max(),
        }
    }
}

impl Tally {
    fn add(&mut self, offer: Offer, receiver: &Arc<Receiver>) {
        match offer {
            Offer::Taken => self.delivered += 1,
            Offer::DroppedOldest => {
                self.delivered += 1;
                self.dropped += 1;
            }
            Offer::DroppedNewest => self.dropped += 1,
            Offer::Gone => self.gone.push(Arc::clone(receiver)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Event, SinkError};

    #[test]
    fn a_sink_that_closes_at_a_gap_is_left_alone() {
        let core = Core::new(Adaptor::InProcess);
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let sink = move |_: Event| {
            counted.fetch_add(1, Ordering::Relaxed);
            Err(SinkError::Closed)
        };
        let receiver = Arc::new(Receiver::sink(Pattern::new("/a").expect("a topic"), sink));
        core.join(&receiver).expect("it is the first");
        core.notify_reconnected();
        assert_eq!(receiver.ended(), Some(End::SinkClosed));
        assert_eq!(core.table.read().sizes(), (0, 0, 0));
        // One that was on its way when the sink closed.
        core.notify_of_gap(&receiver);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}
