//! The subjects of requests.
//!
//! | subject | taken by |
//! |---|---|
//! | `PREFIX.node.NODE.group.GROUP.MESSAGE.KIND` | the member of the group at this node |
//! | `PREFIX.node.NODE.entity.MESSAGE.KIND` | the host of the kind there; the id is a header |
//! | `PREFIX.group.GROUP.MESSAGE.KIND` | any member of the group, by a queue group |
//! | `PREFIX.deliver.group.GROUP.MESSAGE.KIND` | the stream of durable messages |
//! | `PREFIX.deliver.entity.MESSAGE.KIND` | the same |
//! | `PREFIX.dead.…` | the stream of dead ones, with what followed `deliver` |
//! | `PREFIX.told.ID` | nobody: it stands for the reply to what is told, and tells it from others |
//!
//! `KIND` comes last, for it may have several words (`mailer.v1`). So a server's permissions can be
//! given by node, group, message and kind.

use async_nats::{Message, Subject};
use smallvec::SmallVec;

use super::frame;
use crate::node::NodeId;
use crate::wire::{Request, Target};

/// The part of a subject between the prefix and the identity of a message that is told.
const TOLD: &str = ".told.";

pub(crate) struct Subjects {
    prefix: String,
}

impl Subjects {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    pub(crate) fn of_node(&self, node: &NodeId, request: &Request) -> Subject {
        subject(&[&self.prefix, ".node.", node.as_str(), "."], request)
    }

    pub(crate) fn all_of_node(&self, node: &NodeId) -> String {
        format!("{}.node.{node}.>", self.prefix)
    }

    pub(crate) fn of_group(&self, request: &Request) -> Subject {
        subject(&[&self.prefix, "."], request)
    }

    pub(crate) fn all_of_group(&self, group: &str, actor: &str) -> String {
        format!("{}.group.{group}.*.{actor}", self.prefix)
    }

    /// Returns a subject in place of that of a reply, for which nobody waits.
    pub(crate) fn of_no_reply(&self) -> Subject {
        [&self.prefix, TOLD, nuid::next().as_str()].concat().into()
    }

    /// Returns `true` if somebody waits for the reply to a message.
    pub(crate) fn is_awaited(&self, message: &Message) -> bool {
        message.reply.as_ref().is_some_and(|reply| {
            let rest = reply.strip_prefix(&self.prefix);
            !rest.is_some_and(|rest| rest.starts_with(TOLD))
        })
    }

    pub(crate) fn durable(&self, request: &Request) -> Subject {
        subject(&[&self.prefix, ".deliver."], request)
    }

    pub(crate) fn all_durable(&self) -> String {
        format!("{}.deliver.>", self.prefix)
    }

    pub(crate) fn durable_of_group(&self, group: &str, actor: &str) -> String {
        format!("{}.deliver.group.{group}.*.{actor}", self.prefix)
    }

    pub(crate) fn durable_of_kind(&self, actor: &str) -> String {
        format!("{}.deliver.entity.*.{actor}", self.prefix)
    }

    pub(crate) fn dead(&self, request: &Request) -> Subject {
        subject(&[&self.prefix, ".dead."], request)
    }

    pub(crate) fn all_dead(&self) -> String {
        format!("{}.dead.>", self.prefix)
    }

    /// Reads a request of any of these subjects. The error says what is wrong.
    pub(crate) fn request(&self, message: &Message) -> Result<Request, String> {
        let subject = message.subject.as_str();
        let malformed = || format!("`{subject}` is no subject of a message");
        let words = subject.strip_prefix(&self.prefix);
        let words = words.and_then(|words| words.strip_prefix('.'));
        let mut words = words.ok_or_else(malformed)?.splitn(2, '.');
        let rest = match (words.next(), words.next()) {
            (Some("node"), Some(rest)) => rest.split_once('.').map(|(_, rest)| rest),
            (Some("deliver"), Some(rest)) => Some(rest),
            (Some("group"), Some(_)) => subject.strip_prefix(&self.prefix).map(|rest| &rest[1..]),
            _ => None,
        };
        let rest = rest.ok_or_else(malformed)?;
        let (target, rest) = if let Some(rest) = rest.strip_prefix("group.") {
            let (group, rest) = rest.split_once('.').ok_or_else(malformed)?;
            (Target::Group(group.into()), rest)
        } else if let Some(rest) = rest.strip_prefix("entity.") {
            (Target::Entity(frame::entity(message)?), rest)
        } else {
            return Err(malformed());
        };
        let (name, actor) = rest.split_once('.').ok_or_else(malformed)?;
        Ok(Request {
            target,
            actor: actor.to_owned().into(),
            message: name.to_owned().into(),
            timeout: frame::timeout(message, self.is_awaited(message))?,
            id: frame::id(message)?,
            payload: message.payload.clone(),
        })
    }
}

/// Returns the subject of a request at a place.
fn subject(place: &[&str], request: &Request) -> Subject {
    let address = match &request.target {
        Target::Group(group) => ["group.", group],
        Target::Entity(_) => ["entity", ""],
    };
    let name = [".", &*request.message, ".", &*request.actor];
    let parts: SmallVec<[&str; 10]> = place.iter().copied().chain(address).chain(name).collect();
    parts.concat().into()
}
