//! State shared by all handles of a bus: the table, the counters, and the connection to the server.

use std::sync::Arc;

use parking_lot::RwLock;
use tracing::debug;

use crate::meters::Meters;
use crate::redis::Redis;
use crate::subscription::{End, Offer, Receiver};
use crate::table::{Members, Table};
use crate::{Message, Pattern, Topic, TopicError};

/// The most subscriptions of one bus.
pub const SUBSCRIPTIONS_MAX: usize = 1_048_576;

pub(crate) struct Core {
    pub(crate) table: RwLock<Table<Receiver>>,
    pub(crate) meters: Meters,
    pub(crate) adaptor: Adaptor,
}

pub(crate) enum Adaptor {
    InProcess,
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
        match &self.adaptor {
            Adaptor::InProcess => {
                self.insert(receiver)?;
                receiver.establish();
            }
            Adaptor::Redis(redis) => {
                redis.enter(receiver.pattern())?;
                self.insert(receiver)
                    .inspect_err(|_| redis.leave(receiver.pattern()))?;
                redis.settle(receiver);
            }
        }
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
        if let (true, Adaptor::Redis(redis)) = (was_there, &self.adaptor) {
            redis.leave(receiver.pattern());
        }
        was_there
    }

    /// Delivers to all subscribers of the topic, or of a pattern that it matches.
    pub(crate) fn deliver(&self, topic: Topic, payload: bytes::Bytes) {
        let matches = self.table.read().matching(&topic);
        self.deliver_to(&matches, &Message::new(topic, payload));
    }

    pub(crate) fn deliver_to(&self, matches: &[Members<Receiver>], message: &Message) {
        let mut tally = Tally::default();
        for receiver in matches.iter().flat_map(|members| members.iter()) {
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
        if let Adaptor::Redis(redis) = &self.adaptor {
            redis.end();
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
            Self::Redis(_) => "redis",
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
