//! Requests between nodes, and what comes of them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// A message on its way to an actor of some node.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) target: Target,
    /// The kind of actor and the version of its messages, such as `mailer.v1`.
    pub(crate) actor: Box<str>,
    /// The name of the message.
    pub(crate) message: Box<str>,
    /// The time that is left until the deadline; `None` if nobody waits for a reply.
    pub(crate) timeout: Option<Duration>,
    /// The identity of a durable message, the same at each delivery.
    pub(crate) id: Option<Box<str>>,
    pub(crate) payload: Bytes,
}

/// The receiver of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// Any member of the group of this name.
    Group(Box<str>),
    /// The one activation of an entity.
    Entity { kind: Box<str>, id: Box<str> },
}

/// The outcome of a request at the node that handled or rejected it.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) outcome: Result<Bytes, Rejection>,
    /// The time that a further request would wait there.
    pub(crate) wait: Duration,
}

/// The reason for which a node did not handle a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Rejection {
    /// Nothing of that name is published there.
    NoSuchActor { offered: Vec<String> },
    /// The actor has no message of that name.
    NoSuchMessage { known: Vec<String> },
    /// The message does not fit the type that the node has for it.
    NotDecoded { error: String },
    /// As much is under way there as may be.
    Busy { wait_ms: Option<u64> },
    /// The node takes nothing new.
    Draining,
    /// The actor has ended.
    Ended,
    /// The handler failed, or dropped the reply.
    Failed { error: String },
    /// The deadline passed there.
    Late,
    /// The entity is active at another node.
    Moved { node: String },
    /// The entity could not be activated, or lost its lease.
    NotActive { error: String },
}

impl Rejection {
    pub(crate) fn busy(wait: Option<Duration>) -> Self {
        let wait_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        Self::Busy { wait_ms }
    }
}

/// A receiver of requests at this node: a member of a group, or the host of a kind of entity.
pub(crate) trait Inbound: Send + Sync + 'static {
    fn handle(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response>;
}
