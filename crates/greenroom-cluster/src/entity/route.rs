//! The way of a message to the node where its entity is active, or is to be.

use std::collections::HashMap;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::{Instant, sleep};

use super::lease::LocalNodes;
use super::{MemoryStorage, placement};
use crate::core::Core;
use crate::failure::{failed, no_such, rejected};
use crate::nats::SendFailure;
use crate::node::NodeId;
use crate::remote::RemoteError;
use crate::wire::{Name, Rejection, Request, Response, Target};

/// The time within which a message that is told must have reached the node of its entity.
const TOLD_WITHIN: Duration = Duration::from_secs(10);
/// The entities of which a node remembers that they are elsewhere than they would be placed. Beyond
/// it all are forgotten: to ask again costs one message each.
const MOVED_MAX: usize = 65_536;
/// The nodes that one message is sent to without a pause. An entity that moves on while it is
/// looked for is looked for anew.
const HOPS_MAX: usize = 4;
/// The pauses before a message is sent again because its entity is nowhere yet.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The knowledge of a node about entities, besides those that it hosts.
pub(crate) struct Entities {
    /// The nodes of entities that are elsewhere than they would be placed, by their keys' hashes.
    moved: Mutex<HashMap<u64, NodeId>>,
    /// The leases and states of a process alone.
    pub(super) local_nodes: LocalNodes,
    pub(super) local_states: MemoryStorage,
}

/// The reason for which a message did not reach its entity, or was not handled.
enum Failure {
    NoHost,
    Rejected(Rejection),
    Sent(SendFailure, NodeId),
}

/// The search for the node of one entity.
struct Search<'a> {
    core: &'a Core,
    key: u64,
    actor: Name,
    /// The nodes that do not have it.
    tried: SmallVec<[NodeId; HOPS_MAX]>,
    hops: usize,
    pauses: backon::ExponentialBackoff,
    deadline: Instant,
    /// The times that a durable message was sent again, for want of a response.
    repeated: u32,
    failure: Failure,
}

impl Entities {
    pub(crate) fn new() -> Self {
        Self {
            moved: Mutex::default(),
            local_nodes: LocalNodes::new(),
            local_states: MemoryStorage::new(),
        }
    }

    fn moved(&self, key: u64) -> Option<NodeId> {
        self.moved.lock().get(&key).cloned()
    }

    fn note(&self, key: u64, node: NodeId) {
        let mut moved = self.moved.lock();
        if moved.len() >= MOVED_MAX {
            moved.clear();
        }
        moved.insert(key, node);
    }

    fn forget(&self, key: u64) {
        self.moved.lock().remove(&key);
    }
}

impl Core {
    /// Asks an entity wherever it is, by the request's time-out.
    pub(crate) async fn ask_entity(&self, request: &Request) -> Result<Bytes, RemoteError> {
        let after = request.timeout.unwrap_or_default();
        let found = self.find_entity(request, after).await;
        found.map_err(|failure| self.entity_error(request, failure, after))
    }

    /// Tells an entity something: waits until the node where it is active has it.
    pub(crate) async fn tell_entity(&self, request: Request) -> Result<(), RemoteError> {
        let found = self.find_entity(&request, TOLD_WITHIN).await;
        let told = found.map(|_| ());
        told.map_err(|failure| self.entity_error(&request, failure, TOLD_WITHIN))
    }

    /// Gives a durable message to its entity wherever it is, by the request's time-out.
    pub(crate) async fn pass_to_entity(&self, request: Request) -> Response {
        let after = request.timeout.unwrap_or_default();
        let outcome = self.find_entity(&request, after).await;
        let outcome = outcome.map_err(|failure| match failure {
            Failure::NoHost => {
                let offered = Vec::new();
                Rejection::NoSuchActor { offered }
            }
            Failure::Rejected(rejection) => rejection,
            Failure::Sent(SendFailure::TooMany, _) => Rejection::busy(None),
            Failure::Sent(..) => Rejection::Late,
        });
        Response {
            outcome,
            wait: Duration::ZERO,
        }
    }

    async fn find_entity(&self, request: &Request, within: Duration) -> Result<Bytes, Failure> {
        let Target::Entity(id) = &request.target else {
            return Err(Failure::NoHost);
        };
        let pauses = ExponentialBuilder::default()
            .with_min_delay(PAUSE_MIN)
            .with_max_delay(PAUSE_MAX)
            .with_jitter()
            .without_max_times();
        let search = Search {
            core: self,
            key: placement::of_key(super::key::kind_of(&request.actor), id.as_str()),
            actor: request.actor.clone(),
            tried: SmallVec::new(),
            hops: 0,
            pauses: pauses.build(),
            deadline: Instant::now() + within,
            repeated: 0,
            failure: Failure::NoHost,
        };
        search.run(request.clone()).await
    }

    fn entity_error(&self, request: &Request, failure: Failure, after: Duration) -> RemoteError {
        match failure {
            Failure::NoHost => no_such(request, self.table.hosted()),
            Failure::Rejected(rejection) => rejected(request, rejection, after),
            Failure::Sent(failure, node) => failed(request, failure, Some(&node), after),
        }
    }

    /// Returns the node that an entity belongs to, of those that host its kind.
    fn place(&self, actor: &str, key: u64, tried: &[NodeId]) -> Option<NodeId> {
        let placed = self.table.place(actor, key, tried);
        let me = self.me();
        // The others, and the table, hear of a new host a little later than this node itself.
        if !self.hosts(actor) || tried.contains(me) {
            return placed;
        }
        let both = placed.iter().chain([me]);
        placement::best(key, both).cloned()
    }
}

impl Search<'_> {
    async fn run(mut self, mut request: Request) -> Result<Bytes, Failure> {
        let is_told = request.timeout.is_none();
        loop {
            let Some(node) = self.next_node() else {
                self.pause().await?;
                continue;
            };
            let left = self.left(&request);
            request.timeout = (!is_told).then_some(left);
            let sent = if is_told {
                self.core.hand_over(&node, &request, left).await
            } else {
                self.core.send(&node, &request).await
            };
            match sent {
                Ok(Response {
                    outcome: Ok(reply), ..
                }) => return Ok(reply),
                // Whoever waited there has left: a handler that is too slow has failed.
                Ok(Response {
                    outcome: Err(Rejection::Late),
                    ..
                })
                | Err(SendFailure::Late)
                    if self.may_be_repeated(&request) =>
                {
                    self.repeated += 1;
                    self.core.entities.forget(self.key);
                }
                Ok(Response {
                    outcome: Err(rejection),
                    ..
                }) => self.rejected(node, rejection)?,
                Err(SendFailure::NoResponders) => {
                    self.failure = Failure::Sent(SendFailure::NoResponders, node.clone());
                    self.leave_out(node);
                }
                Err(failure) => {
                    // The next message asks anew who has it.
                    self.core.entities.forget(self.key);
                    return Err(Failure::Sent(failure, node));
                }
            }
        }
    }

    /// Returns the time for which a response is waited for. A durable message that was lost on its
    /// way is sent again after the wait before a redelivery, then twice that, and so on. Should it
    /// have come, the second waits behind the first for the same outcome: so one of them is there
    /// when that comes, however long the entity takes.
    fn left(&self, request: &Request) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if request.id.is_none() {
            return left;
        }
        let doubled = 1 << self.repeated.min(16);
        left.min(self.core.limits.redeliver_after.saturating_mul(doubled))
    }

    fn may_be_repeated(&self, request: &Request) -> bool {
        request.id.is_some() && Instant::now() < self.deadline
    }

    fn next_node(&self) -> Option<NodeId> {
        if self.hops > HOPS_MAX {
            return None;
        }
        let moved = self.core.entities.moved(self.key);
        // One that is gone: the servers may listen for it still, and nobody would reply.
        let lives = |node: &NodeId| node == self.core.me() || self.core.table.has(node);
        let moved = moved.filter(|node| !self.tried.contains(node) && lives(node));
        moved.or_else(|| self.core.place(&self.actor, self.key, &self.tried))
    }

    /// Notes what follows from a rejection: another node is tried, unless the message may have been
    /// handled or no other would handle it.
    fn rejected(&mut self, node: NodeId, rejection: Rejection) -> Result<(), Failure> {
        self.hops += 1;
        match &rejection {
            Rejection::Moved { node: to } => match NodeId::read(to) {
                Some(to) if !self.tried.contains(&to) && self.core.table.has(&to) => {
                    self.core.entities.note(self.key, to);
                }
                // It was asked already, and does not have it; or it is gone, and its lease is not
                // over yet; or it is so new that nobody else has heard of it.
                _ => self.hops = HOPS_MAX + 1,
            },
            Rejection::Draining | Rejection::NoSuchActor { .. } | Rejection::NotActive { .. } => {
                self.leave_out(node);
            }
            _ => return Err(Failure::Rejected(rejection)),
        }
        self.failure = Failure::Rejected(rejection);
        Ok(())
    }

    fn leave_out(&mut self, node: NodeId) {
        self.core.entities.forget(self.key);
        self.tried.push(node);
    }

    /// Waits before the nodes are tried once more: a lease may end, a host may come.
    async fn pause(&mut self) -> Result<(), Failure> {
        let pause = self.pauses.next().unwrap_or(PAUSE_MAX);
        let is_hopeless = self.tried.is_empty() && self.hops == 0;
        if is_hopeless || Instant::now() + pause >= self.deadline {
            return Err(std::mem::replace(&mut self.failure, Failure::NoHost));
        }
        sleep(pause).await;
        self.core.entities.forget(self.key);
        self.tried.clear();
        self.hops = 0;
        Ok(())
    }
}
