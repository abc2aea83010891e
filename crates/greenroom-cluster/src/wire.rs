//! Requests between nodes, and what comes of them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::entity::HostStatus;
use crate::names::{self, EntityId};

/// A name that is this program's own, or that another node wrote.
pub(crate) type Name = Cow<'static, str>;

/// A message on its way to an actor of some node.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) target: Target,
    /// The kind of actor and the version of its messages, such as `mailer.v1`.
    pub(crate) actor: Name,
    /// The name of the message.
    pub(crate) message: Name,
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
    Group(Arc<str>),
    /// The one activation of the entity of this id.
    Entity(EntityId),
}

/// The outcome of a request at the node that handled or rejected it.
#[derive(Clone, Debug)]
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

/// The most bytes of an error's text. serde repeats what it could not read, of any length, and both
/// headers of NATS and dead letters are limited.
const ERROR_BYTES_MAX: usize = 1_024;

/// Cuts the text of an error.
fn cut(mut error: String) -> String {
    if error.len() > ERROR_BYTES_MAX {
        error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
        error.push('…');
    }
    error
}

impl Request {
    /// Returns the identity of a durable message in the cluster, as one line: that of another
    /// receiver, another message or another id is another one.
    pub(crate) fn identity(&self) -> String {
        let (message, actor) = (&self.message, &self.actor);
        let id = names::encoded(self.id.as_deref().unwrap_or_default());
        match &self.target {
            Target::Group(group) => format!("group.{group}.{message}.{actor}/{id}"),
            Target::Entity(entity) => {
                format!("entity.{message}.{actor}/{}/{id}", entity.encoded())
            }
        }
    }
}

impl Rejection {
    /// Cuts the text of an error that a user's code may have made.
    pub(crate) fn cut(self) -> Self {
        match self {
            Self::NotDecoded { error } => Self::NotDecoded { error: cut(error) },
            Self::Failed { error } => Self::Failed { error: cut(error) },
            Self::NotActive { error } => Self::NotActive { error: cut(error) },
            other => other,
        }
    }
}

impl Response {
    pub(crate) fn rejected(rejection: Rejection) -> Self {
        Self {
            outcome: Err(rejection),
            wait: Duration::ZERO,
        }
    }

    /// Returns a future that is ready with it.
    pub(crate) fn later(self) -> BoxFuture<'static, Self> {
        std::future::ready(self).boxed()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(name) => write!(f, "the group `{name}`"),
            Self::Entity(id) => write!(f, "the entity `{id}`"),
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchActor { .. } => f.write_str("the node has no such actor"),
            Self::NoSuchMessage { .. } => f.write_str("the actor has no such message"),
            Self::NotDecoded { error } => write!(f, "the message cannot be read there: {error}"),
            Self::Busy { wait_ms: None } => f.write_str("as much waits there as may wait"),
            Self::Busy { wait_ms: Some(ms) } => write!(f, "it would wait {ms} ms there"),
            Self::Draining => f.write_str("the node takes nothing new"),
            Self::Ended => f.write_str("the actor has ended"),
            Self::Failed { error } => write!(f, "the handler failed: {error}"),
            Self::Late => f.write_str("the deadline passed there"),
            Self::Moved { node } => write!(f, "it is active at node {node}"),
            Self::NotActive { error } => write!(f, "it could not be activated: {error}"),
        }
    }
}

impl Rejection {
    /// Returns `true` if another member of the group may handle the request: this one surely did
    /// not.
    pub(crate) fn is_for_another(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Draining | Self::NoSuchActor { .. }
        )
    }

    /// Returns `true` if the same request may be handled later, for no fault of its own.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Busy { .. }
            | Self::Draining
            | Self::Ended
            | Self::Late
            | Self::Moved { .. }
            | Self::NoSuchActor { .. }
            | Self::NotActive { .. } => true,
            Self::NoSuchMessage { .. } | Self::NotDecoded { .. } | Self::Failed { .. } => false,
        }
    }

    /// Returns the reason in one word, as metrics have it.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::NoSuchActor { .. } => "no_such_actor",
            Self::NoSuchMessage { .. } => "no_such_message",
            Self::NotDecoded { .. } => "not_decoded",
            Self::Busy { .. } => "busy",
            Self::Draining => "draining",
            Self::Ended => "ended",
            Self::Failed { .. } => "failed",
            Self::Late => "late",
            Self::Moved { .. } => "moved",
            Self::NotActive { .. } => "not_active",
        }
    }

    /// Returns the rejection of a durable message that nobody handled within this time.
    pub(crate) fn too_slow(within: Duration) -> Self {
        let within = humantime::format_duration(within);
        Self::Failed {
            error: format!("it was not handled within {within}"),
        }
    }

    pub(crate) fn busy(wait: Option<Duration>) -> Self {
        let wait_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        Self::Busy { wait_ms }
    }
}

/// A receiver of requests at this node: a member of a group, or the host of a kind of entity.
pub(crate) trait Inbound: Send + Sync + 'static {
    /// Handles a request, or rejects it. What keeps the order of messages happens at the first
    /// poll.
    fn handle(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response>;

    /// Returns the time that a new request would wait.
    fn wait(&self) -> Duration;

    /// Returns `true` if it takes nothing new.
    fn is_draining(&self) -> bool;

    /// Returns the status of a host of entities.
    fn host_status(&self) -> Option<HostStatus> {
        None
    }
}
