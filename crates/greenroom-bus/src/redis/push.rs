//! Handling of the server's unsolicited messages.

use std::sync::Arc;

use bytes::Bytes;
use redis::{PushInfo, PushKind, Value};
use smallvec::SmallVec;
use tokio::sync::Notify;
use tracing::debug;

use crate::core::Core;
use crate::table::Matches;
use crate::{Message, Topic};

use super::Redis;
use super::channel::{Confirmation, Kind};

/// A receiver of the pushes of one connection, in their order, on the bus' thread. It delivers at
/// once: the subscriptions' queues are the only ones there are.
pub(super) struct Pushes {
    pub(super) core: Arc<Core>,
    pub(super) redis: Arc<Redis>,
    pub(super) signals: Arc<Signals>,
}

/// Signals that end a connection from the server's side.
#[derive(Default)]
pub(super) struct Signals {
    /// The server is gone, or one of a cluster's is.
    pub(super) closed: Notify,
    /// The server ended a subscription unasked. The driver takes such a push for the reply to its
    /// oldest command, so nothing after it can be relied on.
    pub(super) moved: Notify,
}

impl redis::aio::AsyncPushSender for Pushes {
    fn send(&self, mut push: PushInfo) -> Result<(), redis::aio::SendError> {
        let payload = take_payload(&mut push.data);
        let names: SmallVec<[&str; 2]> = push.data.iter().filter_map(text).collect();
        match (push.kind, names.as_slice(), payload) {
            (PushKind::Disconnection, ..) => self.signals.closed.notify_one(),
            (PushKind::Message | PushKind::SMessage, [channel], Some(payload)) => {
                self.deliver(channel, payload);
            }
            (PushKind::PMessage, [glob, channel], Some(payload)) => {
                self.deliver_by_glob(glob, channel, payload);
            }
            (kind, [name], None) => match Confirmation::of(&kind) {
                Some(Confirmation::Subscribed(kind)) => {
                    self.redis
                        .remote
                        .channels
                        .confirm(kind, name, true, &self.core);
                }
                Some(Confirmation::Unsubscribed(kind))
                    if self.redis.remote.channels.is_asked(kind, name) =>
                {
                    self.signals.moved.notify_one();
                }
                Some(Confirmation::Unsubscribed(_)) | None => {}
            },
            _ => {}
        }
        Ok(())
    }
}

impl Pushes {
    /// Delivers to subscribers of the topic by name only: for patterns the server sends another
    /// push.
    fn deliver(&self, channel: &str, payload: Bytes) {
        let found = self.core.table.read().of_topic(channel);
        if let Some((topic, members)) = found {
            self.core
                .deliver_to(&[members], &Message::new(topic, payload));
        }
    }

    fn deliver_by_glob(&self, glob: &str, channel: &str, payload: Bytes) {
        let Ok(topic) = Topic::new(channel) else {
            debug!(channel, "a glob of ours found what is no topic of ours");
            return;
        };
        let patterns = self.redis.remote.channels.patterns(Kind::Glob, glob);
        let matching = patterns.iter().filter(|pattern| pattern.matches(&topic));
        let members: Matches<_> = matching
            .filter_map(|pattern| self.core.members(pattern))
            .collect();
        if !members.is_empty() {
            self.core
                .deliver_to(&members, &Message::new(topic, payload));
        }
    }
}

/// Takes the last element of a message, without a copy. That of a reply is a number.
fn take_payload(data: &mut Vec<Value>) -> Option<Bytes> {
    match data.pop() {
        Some(Value::BulkString(bytes)) => Some(bytes.into()),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}
