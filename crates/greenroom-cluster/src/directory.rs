//! The actors of this node that others reach.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::RwLock;

use crate::entity::{HostStatus, kind_of};
use crate::node::{Offer, Record};
use crate::wire::{Inbound, Rejection, Request, Response, Target};

/// The most groups, and the most kinds of entities, that one node has members or hosts of.
pub const PUBLICATIONS_MAX: usize = 1_024;

#[derive(Default)]
pub(crate) struct Directory {
    /// By the name of the group.
    members: RwLock<HashMap<Box<str>, Kinds>>,
    hosts: RwLock<Kinds>,
    /// The kinds of entities of which a host has ended, with the largest fence that it had.
    ended: RwLock<BTreeMap<&'static str, u64>>,
}

/// The members of one group, or the hosts, by the kind of actor.
type Kinds = BTreeMap<&'static str, Arc<dyn Inbound>>;

/// The reason for which an actor was not published.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishError {
    /// A name cannot be used.
    #[error(transparent)]
    Name(#[from] crate::NameError),
    /// This node has such a member, or such a host, already.
    #[error("this node has {what} of {actor} already: publish a router for several actors")]
    Taken {
        /// The group, or that it is a host.
        what: String,
        /// The kind of actor.
        actor: &'static str,
    },
    /// This node has as many as it may have.
    #[error("this node has {PUBLICATIONS_MAX} of them, and may have no more")]
    TooMany,
}

impl Directory {
    pub(crate) fn add_member(
        &self,
        group: &str,
        actor: &'static str,
        member: Arc<dyn Inbound>,
    ) -> Result<(), PublishError> {
        let mut groups = self.members.write();
        let members = groups.values().map(BTreeMap::len).sum();
        check(groups.get(group), actor, members, || {
            format!("a member of `{group}`")
        })?;
        groups
            .entry(group.into())
            .or_default()
            .insert(actor, member);
        Ok(())
    }

    pub(crate) fn remove_member(&self, group: &str, actor: &str) {
        let mut groups = self.members.write();
        let Some(kinds) = groups.get_mut(group) else {
            return;
        };
        kinds.remove(actor);
        if kinds.is_empty() {
            groups.remove(group);
        }
    }

    pub(crate) fn add_host(
        &self,
        actor: &'static str,
        host: Arc<dyn Inbound>,
    ) -> Result<(), PublishError> {
        let is_same_kind = |hosted: &&'static str| kind_of(hosted) == kind_of(actor);
        let mut hosts = self.hosts.write();
        // Two versions of a kind would take the same entities from each other.
        if hosts.keys().any(is_same_kind) {
            let what = "a host".to_owned();
            return Err(PublishError::Taken { what, actor });
        }
        check(Some(&hosts), actor, hosts.len(), || "a host".to_owned())?;
        hosts.insert(actor, host);
        Ok(())
    }

    /// Returns `true` if entities of this kind are hosted here.
    pub(crate) fn hosts(&self, actor: &str) -> bool {
        let hosts = self.hosts.read();
        hosts.get(actor).is_some_and(|host| !host.is_draining())
    }

    /// Returns the status of the hosts.
    pub(crate) fn host_status(&self) -> Vec<HostStatus> {
        let hosts: Vec<_> = self.hosts.read().values().cloned().collect();
        let mut hosts: Vec<_> = hosts.iter().filter_map(|host| host.host_status()).collect();
        hosts.sort_unstable_by_key(|host| host.kind);
        hosts
    }

    pub(crate) fn remove_host(&self, actor: &str) {
        self.hosts.write().remove(actor);
    }

    /// Notes that the activations of a kind up to this fence have ended.
    pub(crate) fn note_ended(&self, actor: &'static str, fence: u64) {
        let mut ended = self.ended.write();
        let last = ended.entry(kind_of(actor)).or_default();
        *last = fence.max(*last);
    }

    /// Gives a request to its receiver. It is there in the order of first polls.
    pub(crate) fn handle(&self, request: Request) -> BoxFuture<'static, Response> {
        if let Some(inbound) = self.find(&request) {
            return inbound.handle(request);
        }
        let offered = self.offered(&request.target);
        Response::rejected(Rejection::NoSuchActor { offered }).later()
    }

    fn find(&self, request: &Request) -> Option<Arc<dyn Inbound>> {
        let actor = &*request.actor;
        match &request.target {
            Target::Group(group) => self.members.read().get(&**group)?.get(actor).cloned(),
            Target::Entity(_) => self.hosts.read().get(actor).cloned(),
        }
    }

    /// Returns the kinds of actors that are here under this name.
    fn offered(&self, target: &Target) -> Vec<String> {
        let names = |kinds: &Kinds| kinds.keys().map(|&actor| actor.to_owned()).collect();
        match target {
            Target::Group(group) => self
                .members
                .read()
                .get(&**group)
                .map_or_else(Vec::new, names),
            Target::Entity(_) => names(&self.hosts.read()),
        }
    }

    /// Returns what this node offers, for its record.
    pub(crate) fn record(&self, name: &str, is_draining: bool) -> Record {
        let takes = |inbound: &Arc<dyn Inbound>| !is_draining && !inbound.is_draining();
        let (members, hosts) = (self.members.read(), self.hosts.read());
        let members = members.iter().flat_map(|(group, kinds)| {
            let members = kinds.iter().filter(|(_, member)| takes(member));
            members.map(|(actor, member)| offer(group, actor, member))
        });
        let mut groups: Vec<_> = members.collect();
        groups.sort_unstable_by(|one, other| one.group.cmp(&other.group));
        let taking = hosts.iter().filter(|(_, host)| takes(host));
        let entities = taking.map(|(&actor, _)| actor.to_owned()).collect();
        let ended = self.ended.read();
        let ended = ended.iter().map(|(&kind, &fence)| (kind.to_owned(), fence));
        Record {
            name: name.to_owned(),
            groups,
            entities,
            entities_ended: ended.collect(),
            is_draining,
        }
    }
}

fn offer(group: &str, actor: &str, member: &Arc<dyn Inbound>) -> Offer {
    Offer {
        group: group.to_owned(),
        actor: actor.to_owned(),
        wait_ms: u64::try_from(member.wait().as_millis()).unwrap_or(u64::MAX),
    }
}

/// Checks that an actor may be added to these, of `all` that there are.
fn check(
    kinds: Option<&Kinds>,
    actor: &'static str,
    all: usize,
    what: impl FnOnce() -> String,
) -> Result<(), PublishError> {
    if kinds.is_some_and(|kinds| kinds.contains_key(actor)) {
        let what = what();
        return Err(PublishError::Taken { what, actor });
    }
    if all >= PUBLICATIONS_MAX {
        return Err(PublishError::TooMany);
    }
    Ok(())
}
