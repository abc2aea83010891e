//! The nodes that this one knows of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use greenroom_actor::Recipient;
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::{NodeId, Record};
use crate::entity::placement;

/// The most nodes of a cluster. What more there are is not asked.
const NODES_MAX: usize = 1_024;
/// The most subscribers of changes.
const WATCHERS_MAX: usize = 1_024;

/// A change among the members of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberEvent {
    /// The group.
    pub group: String,
    /// The kind of actor, such as `mailer.v1`.
    pub actor: String,
    /// The node whose member it is.
    pub node: NodeId,
    /// The change.
    pub change: MemberChange,
}

/// A kind of change among the members of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// A member is there, or takes messages again.
    Joined,
    /// A member left: its actor ended, or its node drains.
    Left,
    /// The node was not heard of for the time of its lease: it died, or is cut off.
    Lost,
}

/// The live nodes of a cluster, as far as this one has heard.
pub(crate) struct Table {
    nodes: RwLock<BTreeMap<NodeId, Arc<Node>>>,
    changed: watch::Sender<u64>,
    watchers: Mutex<Vec<Watcher>>,
    asks_per_node_max: u32,
}

struct Node {
    record: Record,
    heard: Instant,
    load: Arc<Load>,
}

/// The load of a node, as far as this one knows.
#[derive(Default)]
struct Load {
    /// Asks of this node that are under way there.
    pending: AtomicU32,
    /// The wait that it reported last for each of its groups, in milliseconds.
    waits: Mutex<BTreeMap<String, u64>>,
    /// Nobody listened there when it was asked last; until it is heard of again.
    is_silent: AtomicBool,
    is_gone: AtomicBool,
    gone: Notify,
}

struct Watcher {
    group: String,
    actor: &'static str,
    recipient: Recipient<MemberEvent>,
}

/// The subscription of an actor to the members of a group; for a reader of the public API.
pub(crate) struct MemberEvents<'a>(pub(crate) &'a str, pub(crate) &'static str);

/// An ask that is under way at a node.
pub(crate) struct Pending(Arc<Load>);

impl Pending {
    /// Waits until the node is not there any more; for ever if this one has not heard of it.
    pub(crate) async fn gone(&self) {
        // Listened to before the look, or the end could go unnoticed.
        let gone = self.0.gone.notified();
        if !self.0.is_gone.load(Ordering::SeqCst) {
            gone.await;
        }
    }

    /// Notes the wait that the node reported with its response.
    pub(crate) fn report(&self, group: &str, wait: Duration) {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        if let Some(before) = self.0.waits.lock().get_mut(group) {
            *before = wait;
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Table {
    pub(crate) fn new(asks_per_node_max: u32) -> Self {
        Self {
            nodes: RwLock::default(),
            changed: watch::Sender::new(0),
            watchers: Mutex::default(),
            asks_per_node_max,
        }
    }

    /// Notes the record of a node that lives.
    pub(crate) fn heard(&self, id: &NodeId, record: &Record) {
        let mut nodes = self.nodes.write();
        if nodes.len() >= NODES_MAX && !nodes.contains_key(id) {
            tracing::warn!(target: TARGET, %id, "one node more than {NODES_MAX}: not known");
            return;
        }
        let before = nodes.get(id).map(Arc::clone);
        let load = before.as_ref().map(|node| Arc::clone(&node.load));
        let load = load.unwrap_or_default();
        load.is_silent.store(false, Ordering::Relaxed);
        let waits = record.groups.iter();
        *load.waits.lock() = waits
            .map(|offer| (offer.group.clone(), offer.wait_ms))
            .collect();
        let node = Node {
            record: record.clone(),
            heard: Instant::now(),
            load,
        };
        nodes.insert(id.clone(), Arc::new(node));
        drop(nodes);
        let before = before.map(|node| node.record.clone()).unwrap_or_default();
        self.notify(id, &before, record, MemberChange::Left);
    }

    /// Notes that nobody listens at a node: it is not picked until it is heard of again.
    pub(crate) fn note_silent(&self, id: &NodeId) {
        if let Some(node) = self.nodes.read().get(id) {
            node.load.is_silent.store(true, Ordering::Relaxed);
        }
    }

    /// Removes a node that said goodbye.
    pub(crate) fn left(&self, id: &NodeId) {
        self.remove(id, MemberChange::Left);
    }

    /// Removes the nodes that were not heard of for this long.
    pub(crate) fn expire(&self, lease: Duration) {
        let nodes = self.nodes.read();
        let silent = nodes
            .iter()
            .filter(|(_, node)| node.heard.elapsed() > lease);
        let silent: Vec<_> = silent.map(|(id, _)| id.clone()).collect();
        drop(nodes);
        for id in &silent {
            tracing::info!(target: TARGET, node = %id, "a node was lost");
            self.remove(id, MemberChange::Lost);
        }
    }

    fn remove(&self, id: &NodeId, change: MemberChange) {
        let Some(node) = self.nodes.write().remove(id) else {
            return;
        };
        node.load.is_gone.store(true, Ordering::SeqCst);
        node.load.gone.notify_waiters();
        self.notify(id, &node.record, &Record::default(), change);
    }

    /// Returns `true` if the node is there.
    pub(crate) fn has(&self, id: &NodeId) -> bool {
        self.nodes.read().contains_key(id)
    }

    /// Wakes those who wait for a change: this node itself has one, which the table does not know.
    pub(crate) fn note_own_change(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    /// Returns changes of the table, for those who wait for one.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Picks a member of a group: of two at random the one with the less load. `tried` ones are
    /// left out.
    pub(crate) fn pick_member(&self, group: &str, actor: &str, tried: &[NodeId]) -> Option<NodeId> {
        let nodes = self.nodes.read();
        let offers = |(id, node): &(&NodeId, &Arc<Node>)| {
            let (record, is_silent) = (&node.record, &node.load.is_silent);
            let is_there = !record.is_draining && !is_silent.load(Ordering::Relaxed);
            is_there && record.offers(group, actor) && !tried.contains(*id)
        };
        let members: SmallVec<[_; 8]> = nodes.iter().filter(offers).collect();
        if members.len() < 2 {
            return members.first().map(|(id, _)| (*id).clone());
        }
        let first = fastrand::usize(..members.len());
        let second = (first + fastrand::usize(1..members.len())) % members.len();
        let (one, other) = (members[first], members[second]);
        let is_less = other.1.weight(group) < one.1.weight(group);
        Some(if is_less {
            other.0.clone()
        } else {
            one.0.clone()
        })
    }

    /// Returns the live node that the entity with this key belongs to, of those that host its kind.
    /// `tried` ones are left out.
    pub(crate) fn place(&self, kind: &str, key: u64, tried: &[NodeId]) -> Option<NodeId> {
        let nodes = self.nodes.read();
        let hosts = nodes.iter().filter(|(id, node)| {
            !node.record.is_draining && node.record.hosts(kind) && !tried.contains(id)
        });
        placement::best(key, hosts.map(|(id, _)| id)).cloned()
    }

    /// Returns the kinds of entities that are hosted anywhere.
    pub(crate) fn hosted(&self) -> Vec<String> {
        let nodes = self.nodes.read();
        let kinds = nodes.values().flat_map(|node| &node.record.entities);
        let mut kinds: Vec<_> = kinds.cloned().collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Returns the kinds of actors that members of this group are of.
    pub(crate) fn offered(&self, group: &str) -> Vec<String> {
        let nodes = self.nodes.read();
        let offers = nodes.values().flat_map(|node| &node.record.groups);
        let of_group = offers.filter(|offer| offer.group == group);
        let mut kinds: Vec<_> = of_group.map(|offer| offer.actor.clone()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Notes an ask of a node. `None` if as many are under way there as may be.
    pub(crate) fn ask(&self, id: &NodeId, is_limited: bool) -> Option<Pending> {
        let load = self.nodes.read().get(id).map(|node| Arc::clone(&node.load));
        let load = load.unwrap_or_default();
        let pending = load.pending.fetch_add(1, Ordering::Relaxed);
        let may_be_more = !is_limited || pending < self.asks_per_node_max;
        let noted = Pending(load);
        may_be_more.then_some(noted)
    }

    /// Subscribes an actor to the changes of a group, and tells it of the members that are there.
    pub(crate) fn watch(
        &self,
        MemberEvents(group, actor): MemberEvents<'_>,
        recipient: Recipient<MemberEvent>,
    ) -> bool {
        let mut watchers = self.watchers.lock();
        watchers.retain(|watcher| watcher.recipient.is_alive());
        if watchers.len() >= WATCHERS_MAX {
            return false;
        }
        let nodes = self.nodes.read();
        let members = nodes
            .iter()
            .filter(|(_, node)| !node.record.is_draining && node.record.offers(group, actor));
        for (id, _) in members {
            let _ = recipient.tell(MemberEvent {
                group: group.to_owned(),
                actor: actor.to_owned(),
                node: id.clone(),
                change: MemberChange::Joined,
            });
        }
        watchers.push(Watcher {
            group: group.to_owned(),
            actor,
            recipient,
        });
        true
    }

    /// Returns the records of all nodes, and for how long each was not heard of.
    pub(crate) fn records(&self) -> Vec<(NodeId, Record, Duration)> {
        let nodes = self.nodes.read();
        let records = nodes
            .iter()
            .map(|(id, node)| (id.clone(), node.record.clone(), node.heard.elapsed()));
        records.collect()
    }

    fn notify(&self, node: &NodeId, before: &Record, after: &Record, gone: MemberChange) {
        let is_member = |record: &Record, watcher: &Watcher| {
            !record.is_draining && record.offers(&watcher.group, watcher.actor)
        };
        self.watchers.lock().retain(|watcher| {
            let (was, is) = (is_member(before, watcher), is_member(after, watcher));
            if was == is {
                return true;
            }
            let event = MemberEvent {
                group: watcher.group.clone(),
                actor: watcher.actor.to_owned(),
                node: node.clone(),
                change: if is { MemberChange::Joined } else { gone },
            };
            if watcher
                .recipient
                .tell(event)
                .is_err_and(|error| error.is_full())
            {
                let group = &watcher.group;
                tracing::warn!(target: TARGET, group, "a watcher's mailbox is full");
            }
            watcher.recipient.is_alive()
        });
        self.changed.send_modify(|version| *version += 1);
    }
}

impl Node {
    /// Returns the load by which members are compared: the reported wait, and among equals the
    /// asks of this node that are under way there.
    fn weight(&self, group: &str) -> (u64, u32) {
        let wait = self.load.waits.lock().get(group).copied();
        let pending = self.load.pending.load(Ordering::Relaxed);
        (wait.unwrap_or(0), pending)
    }
}

const TARGET: &str = "greenroom::cluster";
