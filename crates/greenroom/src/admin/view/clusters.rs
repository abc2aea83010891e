use std::time::Duration;

use greenroom_cluster::{ClusterStatus, HostStatus, NodeStatus};

use super::format::{count, len};
use super::{Block, Column, Fact, Facts, Section, Table, Value};
use crate::Status;

/// A node that was not heard of for so long is about to be lost.
const SILENT: Duration = Duration::from_secs(4);

pub(super) fn section(status: &Status) -> Section {
    Section {
        id: "cluster",
        title: "Cluster",
        page: "cluster.md",
        about: "The nodes of the clusters that the server was given, and what each has: members \
                of groups, and kinds of entities.",
        blocks: status.clusters.iter().flat_map(blocks).collect(),
        empty: "The server was given no cluster: a program gives it one by `.cluster(&cluster)`.",
    }
}

fn blocks(cluster: &ClusterStatus) -> Vec<Block> {
    let mut blocks = vec![facts(cluster)];
    let nodes = cluster.nodes.iter().map(node).collect();
    blocks.extend(Table::new("Nodes", NODES, nodes).into_blocks());
    let hosts = cluster.hosts.iter().map(host).collect();
    blocks.extend(Table::new("Entities of this node", HOSTS, hosts).into_blocks());
    blocks
}

fn facts(cluster: &ClusterStatus) -> Block {
    let state = match (&cluster.server, cluster.is_connected) {
        (None, _) => "none needed",
        (Some(_), true) => "connected",
        (Some(_), false) => "away",
    };
    let lost = |number: u64| Value::from(count(number)).warn_if(number > 0);
    let waiting = cluster.durable.map_or(0, |durable| durable.messages);
    Block::Facts(Facts {
        title: format!("Node {}", cluster.node),
        facts: vec![
            Fact::new(
                "NATS",
                NATS,
                Value::from(state).bad_if(!cluster.is_connected),
            ),
            Fact::new("Nodes that live", LIVE, len(cluster.nodes.len())),
            Fact::new("Durable messages", DURABLE, count(waiting)),
            Fact::new("Asked elsewhere", ELSEWHERE, count(cluster.asked_elsewhere)),
            Fact::new("Dead letters", DEAD, lost(cluster.dead_letters)),
        ],
    })
}

fn node(node: &NodeStatus) -> Vec<Value> {
    let groups: Vec<_> = node.groups.iter().map(member).collect();
    let state = if node.is_draining { "drains" } else { "lives" };
    let silent = node.silent_seconds;
    vec![
        node.name.clone().into(),
        node.id.clone().into(),
        Value::from(state).warn_if(node.is_draining),
        Value::from(format!("{silent:.1} s")).warn_if(silent > SILENT.as_secs_f64()),
        or_none(groups.join(", ")).into(),
        or_none(node.entities.join(", ")).into(),
    ]
}

fn member(member: &greenroom_cluster::GroupStatus) -> String {
    match member.wait_ms {
        0 => format!("{} ({})", member.group, member.actor),
        wait => format!("{} ({}, {wait} ms)", member.group, member.actor),
    }
}

fn host(host: &HostStatus) -> Vec<Value> {
    let failed = host.not_activated;
    vec![
        host.kind.to_owned().into(),
        len(host.entities).into(),
        len(host.idle).into(),
        len(host.in_flight).into(),
        count(host.activated).into(),
        Value::from(count(failed)).warn_if(failed > 0),
        count(host.passivated).into(),
        Value::from(count(host.fenced)).warn_if(host.fenced > 0),
    ]
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "–".to_owned()
    } else {
        text
    }
}

const NATS: &str = "The connection to the servers of NATS. While it is away, asks fail.";
const LIVE: &str = "Nodes that this one has heard of within a lease, itself included.";
const DURABLE: &str = "Durable messages of all nodes that wait or are being handled.";
const ELSEWHERE: &str = "Asks that one member of a group rejected, and that went to another.";
const DEAD: &str =
    "Messages that came here, were not handled, and whose sender did not hear of it.";

const NODES: &[Column] = &[
    Column::text("Name", "The name that its operator gave it."),
    Column::text("Node", "Its identity, new with each start."),
    Column::text("State", "lives, or drains: it takes nothing new."),
    Column::number(
        "Silent",
        "The time since it was last heard of; at the lease it is lost.",
    ),
    Column::text(
        "Groups",
        "The groups it has a member of: the kind, and the wait it reported.",
    ),
    Column::text("Entities", "The kinds of entities that it hosts."),
];

const HOSTS: &[Column] = &[
    Column::text("Kind", "The kind of entity."),
    Column::number(
        "Active",
        "Entities that are active, or on their way to be or not to be.",
    ),
    Column::number("Idle", "Those of them that nothing waits for."),
    Column::number("Under way", "Messages that wait or are handled."),
    Column::number("Activated", "Activations since the host began."),
    Column::number("Not activated", "Activations that failed."),
    Column::number(
        "Passivated",
        "Activations that ended because the entity was idle.",
    ),
    Column::number(
        "Fenced",
        "Activations that ended because a later one had written.",
    ),
];
