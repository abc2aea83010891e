//! The actors of this node that others reach.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::RwLock;

use crate::entity::{HostStatus, kind_of};
use crate::node::{Offer, Record};
use crate::wire::{Inbound, Rejection, Request, Response, Target};

/// The most groups, and the most kinds of entities, that one node has members or hosts of.
pub const PUBLICATIONS_MAX: usize = 1_024;

#[derive(Default)]
pub(crate) struct Directory {
    /// By the name of the group and the kind of actor.
    members: RwLock<Table>,
    /// By the kind of actor; the name of the group is empty.
    hosts: RwLock<Table>,
}

type Table = HashMap<(Box<str>, Box<str>), Arc<dyn Inbound>>;

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
        let what = || format!("a member of `{group}`");
        add(&mut self.members.write(), (group, actor), member, what)
    }

    pub(crate) fn remove_member(&self, group: &str, actor: &str) {
        self.members.write().remove(&(group.into(), actor.into()));
    }

    pub(crate) fn add_host(
        &self,
        actor: &'static str,
        host: Arc<dyn Inbound>,
    ) -> Result<(), PublishError> {
        let is_same_kind = |(_, hosted): &(Box<str>, Box<str>)| kind_of(hosted) == kind_of(actor);
        let mut hosts = self.hosts.write();
        // Two versions of a kind would take the same entities from each other.
        if hosts.keys().any(is_same_kind) {
            let what = "a host".to_owned();
            return Err(PublishError::Taken { what, actor });
        }
        add(&mut hosts, ("", actor), host, || "a host".to_owned())
    }

    /// Returns `true` if entities of this kind are hosted here.
    pub(crate) fn hosts(&self, actor: &str) -> bool {
        let host = self.hosts.read().get(&("".into(), actor.into())).cloned();
        host.is_some_and(|host| !host.is_draining())
    }

    /// Returns the status of the hosts.
    pub(crate) fn host_status(&self) -> Vec<HostStatus> {
        let hosts: Vec<_> = self.hosts.read().values().cloned().collect();
        let mut hosts: Vec<_> = hosts.iter().filter_map(|host| host.host_status()).collect();
        hosts.sort_unstable_by_key(|host| host.kind);
        hosts
    }

    pub(crate) fn remove_host(&self, actor: &str) {
        self.hosts.write().remove(&("".into(), actor.into()));
    }

    /// Gives a request to its receiver. It is there in the order of first polls.
    pub(crate) fn handle(&self, request: Request) -> BoxFuture<'static, Response> {
        match self.find(&request) {
            Some(inbound) => inbound.handle(request),
            None => {
                let offered = self.offered(&request.target);
                let rejection = Rejection::NoSuchActor { offered };
                std::future::ready(Response::rejected(rejection)).boxed()
            }
        }
    }

    fn find(&self, request: &Request) -> Option<Arc<dyn Inbound>> {
        let (table, group) = match &request.target {
            Target::Group(group) => (&self.members, group.clone()),
            Target::Entity(_) => (&self.hosts, "".into()),
        };
        let found = table.read().get(&(group, request.actor.clone())).cloned();
        found
    }

    /// Returns the kinds of actors that are here under this name.
    fn offered(&self, target: &Target) -> Vec<String> {
        let (table, name) = match target {
            Target::Group(name) => (&self.members, &**name),
            Target::Entity(_) => (&self.hosts, ""),
        };
        let table = table.read();
        let kinds = table.keys().filter(|(group, _)| &**group == name);
        kinds.map(|(_, actor)| actor.to_string()).collect()
    }

    /// Returns what this node offers, for its record.
    pub(crate) fn record(&self, name: &str, is_draining: bool) -> Record {
        let takes = |inbound: &Arc<dyn Inbound>| !is_draining && !inbound.is_draining();
        let (members, hosts) = (self.members.read(), self.hosts.read());
        let members = members.iter().filter(|(_, member)| takes(member));
        let mut groups: Vec<_> = members
            .map(|((group, actor), member)| offer(group, actor, member))
            .collect();
        groups.sort_unstable_by(|one, other| one.group.cmp(&other.group));
        let hosts = hosts.iter().filter(|(_, host)| takes(host));
        let mut entities: Vec<_> = hosts.map(|((_, actor), _)| actor.to_string()).collect();
        entities.sort_unstable();
        Record {
            name: name.to_owned(),
            groups,
            entities,
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

fn add(
    table: &mut Table,
    (group, actor): (&str, &'static str),
    inbound: Arc<dyn Inbound>,
    what: impl FnOnce() -> String,
) -> Result<(), PublishError> {
    let key = (group.into(), actor.into());
    if table.contains_key(&key) {
        let what = what();
        return Err(PublishError::Taken { what, actor });
    }
    if table.len() >= PUBLICATIONS_MAX {
        return Err(PublishError::TooMany);
    }
    table.insert(key, inbound);
    Ok(())
}
