//! The clusters of the process' servers, at the moment of the question.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_cluster::{ClusterStatus, HostStatus};

use super::text::Text;
use crate::status::Shown;

type Count = fn(&HostStatus) -> u64;

/// Metrics of a kind of entities.
const OF_HOSTS: [(&str, Count); 6] = [
    ("greenroom_cluster_entities", |host| host.entities as u64),
    ("greenroom_cluster_entity_messages", |host| {
        host.in_flight as u64
    }),
    ("greenroom_cluster_activations_total", |host| host.activated),
    ("greenroom_cluster_activation_failures_total", |host| {
        host.not_activated
    }),
    ("greenroom_cluster_passivations_total", |host| {
        host.passivated
    }),
    ("greenroom_cluster_fenced_total", |host| host.fenced),
];

pub(super) fn add(text: &mut Text) {
    let servers = Shown::of_process();
    // Two servers may show the same cluster.
    let clusters = servers.iter().flat_map(|server| server.clusters());
    let clusters: BTreeMap<_, _> = clusters
        .map(|status| (status.node.clone(), status))
        .collect();
    if !clusters.is_empty() {
        let clusters: Vec<_> = clusters.into_values().collect();
        add_clusters(&clusters, text);
        add_hosts(&clusters, text);
    }
}

fn add_clusters(clusters: &[ClusterStatus], text: &mut Text) {
    let away = clusters.iter().filter(|cluster| !cluster.is_connected);
    let nodes = clusters.iter().flat_map(|cluster| &cluster.nodes);
    let nodes: BTreeSet<_> = nodes.map(|node| &node.id).collect();
    let durable = clusters.iter().filter_map(|cluster| cluster.durable);
    let elsewhere = clusters.iter().map(|cluster| cluster.asked_elsewhere);
    for (name, value) in [
        ("greenroom_cluster_disconnected", away.count() as u64),
        ("greenroom_cluster_nodes", nodes.len() as u64),
        (
            "greenroom_cluster_durable_messages",
            durable.map(|durable| durable.messages).sum(),
        ),
        ("greenroom_cluster_asked_elsewhere_total", elsewhere.sum()),
    ] {
        text.begin(name);
        text.value(name, &[], value);
    }
}

fn add_hosts(clusters: &[ClusterStatus], text: &mut Text) {
    for (name, count) in OF_HOSTS {
        let mut by_kind = BTreeMap::<_, u64>::new();
        for host in clusters.iter().flat_map(|cluster| &cluster.hosts) {
            *by_kind.entry(host.kind).or_default() += count(host);
        }
        text.begin(name);
        for (kind, sum) in by_kind {
            text.value(name, &[("kind", kind)], sum);
        }
    }
}
