use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A node's record in the bucket of nodes: JSON, so that operators and other programs read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The name that its operator gave it.
    pub(crate) name: String,
    /// The groups that it has members of.
    #[serde(default)]
    pub(crate) groups: Vec<Offer>,
    /// The kinds of entities that it hosts.
    #[serde(default)]
    pub(crate) entities: Vec<String>,
    /// The kinds of entities of which a host has ended there, each with the largest fence that it
    /// had: leases up to that are void, though they name this node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) entities_ended: BTreeMap<String, u64>,
    /// `true` if it takes nothing new.
    #[serde(default)]
    pub(crate) is_draining: bool,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) group: String,
    /// The kind of actor, such as `mailer.v1`.
    pub(crate) actor: String,
    /// The time that a new message waits there.
    #[serde(default)]
    pub(crate) wait_ms: u64,
}

impl Record {
    pub(crate) fn offers(&self, group: &str, actor: &str) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|offer| offer.group == group && offer.actor == actor)
    }

    pub(crate) fn hosts(&self, kind: &str) -> bool {
        self.entities.iter().any(|hosted| hosted == kind)
    }

    /// Returns `true` if the activation of this kind and fence is over there.
    pub(crate) fn has_ended(&self, kind: &str, fence: u64) -> bool {
        let ended = self.entities_ended.get(kind);
        ended.is_some_and(|&last| fence <= last)
    }
}
