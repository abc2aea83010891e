use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::core::Core;
use crate::entity::HostStatus;

/// A cluster at one moment, as one node sees it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// This node.
    pub node: String,
    /// `true` if this node has a connection to the servers, or needs none.
    pub is_connected: bool,
    /// The server that it is connected to, if there is one.
    pub server: Option<String>,
    /// The nodes that live.
    pub nodes: Vec<NodeStatus>,
    /// The kinds of entities that this node hosts.
    pub hosts: Vec<HostStatus>,
    /// The durable messages of all nodes, when this one last asked, which it does
    /// every 5 s. `None` before, and within a process alone.
    pub durable: Option<DurableStatus>,
    /// Messages that came here and were not handled, and whose senders did not hear of it.
    pub dead_letters: u64,
    /// Asks of this node that one member of a group rejected and that went to another.
    pub asked_elsewhere: u64,
}

/// The durable messages of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DurableStatus {
    /// Those that wait or are being handled.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A node of a cluster.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Its identity.
    pub id: String,
    /// The name that its operator gave it.
    pub name: String,
    /// The seconds since it was last heard of.
    pub silent_seconds: f64,
    /// `true` if it takes nothing new.
    pub is_draining: bool,
    /// The groups that it has members of.
    pub groups: Vec<GroupStatus>,
    /// The kinds of entities that it hosts.
    pub entities: Vec<String>,
}

/// A member of a group.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct GroupStatus {
    /// The group.
    pub group: String,
    /// The kind of actor, such as `mailer.v1`.
    pub actor: String,
    /// The wait that it reported, in milliseconds.
    pub wait_ms: u64,
}

impl ClusterStatus {
    pub(crate) fn of(core: &Core) -> Self {
        let mut records = core.table.records();
        let mine = (core.me().clone(), core.record(), std::time::Duration::ZERO);
        match records.iter_mut().find(|(id, ..)| id == core.me()) {
            Some(known) => *known = mine,
            None => records.push(mine),
        }
        let nodes = records.into_iter().map(|(id, record, silent)| NodeStatus {
            id: id.to_string(),
            name: record.name,
            silent_seconds: silent.as_secs_f64(),
            is_draining: record.is_draining,
            groups: record.groups.into_iter().map(Into::into).collect(),
            entities: record.entities,
        });
        let client = core.nats().map(|nats| &nats.client);
        Self {
            node: core.me().to_string(),
            is_connected: client.is_none_or(|client| {
                client.connection_state() == async_nats::connection::State::Connected
            }),
            server: client.map(|client| client.server_info().server_name),
            nodes: nodes.collect(),
            hosts: core.directory.host_status(),
            durable: *core.durable.lock(),
            dead_letters: core.meters.dead_letters.load(Ordering::Relaxed),
            asked_elsewhere: core.meters.elsewhere.load(Ordering::Relaxed),
        }
    }
}

impl From<crate::node::Offer> for GroupStatus {
    fn from(offer: crate::node::Offer) -> Self {
        Self {
            group: offer.group,
            actor: offer.actor,
            wait_ms: offer.wait_ms,
        }
    }
}
