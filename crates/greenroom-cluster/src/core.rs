//! State shared by the handles of a cluster at one node, and the way of a request to its receiver.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::Subject;
use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::{Instant, timeout_at};

use crate::deliver::{self, Delivery, LocalDurable};
use crate::directory::Directory;
use crate::entity::Entities;
use crate::failure::{failed, no_such, rejected};
use crate::meters::Meters;
use crate::nats::{Nats, SendFailure};
use crate::node::{Membership, NodeId, Record, Table};
use crate::remote::RemoteError;
use crate::settings::Limits;
use crate::status::DurableStatus;
use crate::wire::{Request, Response, Target};

/// The members of a group that may reject one request, until its sender is told.
const TRIES_MAX: usize = 3;
/// The part of the encoded size that headers may have.
const HEADERS_BYTES_MAX: usize = 2_048;

pub(crate) struct Core {
    pub(crate) limits: Limits,
    pub(crate) table: Arc<Table>,
    pub(crate) directory: Directory,
    pub(crate) membership: Arc<Membership>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) is_draining: AtomicBool,
    /// Held while a process alone notes what it offers: the last to do so has the last word.
    changing: Mutex<()>,
    /// The durable messages of all nodes, as this one last heard.
    pub(crate) durable: Mutex<Option<DurableStatus>>,
    pub(crate) local_durable: LocalDurable,
    pub(crate) entities: Entities,
    /// `None` within a process alone.
    pub(crate) nats: Option<Nats>,
}

/// The outcome of one try at one node.
pub(crate) type Tried = Result<Response, SendFailure>;

impl Core {
    pub(crate) fn new(limits: Limits, nats: Option<Nats>) -> Self {
        let membership = Membership::new(NodeId::random(), limits.lease);
        Self {
            table: Arc::new(Table::new(limits.asks_per_node_max)),
            directory: Directory::default(),
            membership: Arc::new(membership),
            meters: Arc::new(Meters::new()),
            changing: Mutex::new(()),
            is_draining: AtomicBool::new(false),
            durable: Mutex::default(),
            local_durable: LocalDurable::default(),
            entities: Entities::new(),
            limits,
            nats,
        }
    }

    pub(crate) fn nats(&self) -> Option<&Nats> {
        self.nats.as_ref()
    }

    pub(crate) fn me(&self) -> &NodeId {
        &self.membership.me
    }

    /// Returns this node's record as it is now.
    pub(crate) fn record(&self) -> Record {
        let is_draining = self.is_draining.load(Ordering::Relaxed);
        self.directory.record(&self.limits.node_name, is_draining)
    }

    /// Has the others know what this node offers now; in a process alone, those who watch.
    pub(crate) fn note_change(&self) {
        if self.nats.is_some() {
            self.table.note_own_change();
            self.membership.change();
            return;
        }
        let _turn = self.changing.lock();
        self.table.heard(self.me(), &self.record());
    }

    /// Waits until the others can know what this node offers now.
    pub(crate) async fn announced(&self) {
        if self.nats.is_some() {
            self.membership.announced().await;
        }
    }

    pub(crate) fn message_bytes_max(&self) -> usize {
        let ours = self.limits.message_bytes_max;
        let server = self.nats().map(|nats| nats.client.max_payload());
        server.map_or(ours, |server| {
            ours.min(server.saturating_sub(HEADERS_BYTES_MAX))
        })
    }

    pub(crate) fn check_size(&self, message: &str, bytes: usize) -> Result<(), RemoteError> {
        let bytes_max = self.message_bytes_max();
        if bytes <= bytes_max {
            return Ok(());
        }
        Err(RemoteError::TooLarge {
            message: message.to_owned(),
            bytes,
            bytes_max,
        })
    }

    pub(crate) async fn ask(&self, request: &mut Request) -> Result<Bytes, RemoteError> {
        self.meters.asked();
        let reply = match &request.target {
            Target::Group(_) => self.ask_group(request).await,
            // Boxed: it is large, and the asks of groups would carry it.
            Target::Entity(_) => Box::pin(self.ask_entity(request)).await,
        };
        reply.inspect_err(|error| self.meters.failed(error.label()))
    }

    /// Asks one member after the other, as long as each surely did not handle the request. Nodes
    /// that died do not count among the tries: many may be known until their leases end.
    async fn ask_group(&self, request: &mut Request) -> Result<Bytes, RemoteError> {
        let after = request.timeout.unwrap_or_default();
        let deadline = Instant::now() + after;
        let (mut tried, mut rejected) = (SmallVec::<[NodeId; TRIES_MAX]>::new(), 0);
        loop {
            let node = self.member(request, &tried);
            request.timeout = Some(deadline.saturating_duration_since(Instant::now()));
            let response = match &node {
                Some(node) => self.send(node, request).await,
                None => self.send_to_any(request).await,
            };
            match (&node, &response) {
                (Some(node), Err(SendFailure::NoResponders)) => self.table.note_silent(node),
                _ => rejected += 1,
            }
            let is_last = node.is_none() || rejected == TRIES_MAX;
            let error = match self.outcome(request, response, node.as_ref(), after) {
                Ok(reply) => return Ok(reply),
                Err((error, true)) if !is_last => error,
                Err((error, _)) => return Err(error),
            };
            tried.extend(node);
            if self.member(request, &tried).is_none() {
                return Err(error);
            }
            self.meters.elsewhere.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Picks a member: of this node's own table, or of itself if it is alone.
    fn member(&self, request: &Request, tried: &[NodeId]) -> Option<NodeId> {
        let Target::Group(group) = &request.target else {
            return None;
        };
        if self.nats.is_none() {
            return (!tried.contains(self.me())).then(|| self.me().clone());
        }
        self.table.pick_member(group, &request.actor, tried)
    }

    /// Sends a request to a node, and waits for the response as long as the request's time-out and
    /// the node's life last.
    pub(crate) async fn send(&self, node: &NodeId, request: &Request) -> Tried {
        let timeout = request.timeout.unwrap_or_default();
        let is_mine = node == self.me();
        // What this node itself has to do has limits of its own.
        let Some(pending) = self.table.ask(node, !is_mine) else {
            return Err(SendFailure::TooMany);
        };
        if is_mine {
            let handled = self.directory.handle(request.clone());
            let handled = timeout_at(Instant::now() + timeout, handled).await;
            return handled.map_err(|_| SendFailure::Late);
        }
        let Some(nats) = self.nats() else {
            return Err(SendFailure::NoResponders);
        };
        // Large, so it is not moved once more.
        let asked = pin!(nats.ask(nats.subject_of(node, request), request, timeout));
        let response = tokio::select! {
            // A response that is there counts.
            biased;
            response = asked => response,
            () = pending.gone() => Err(SendFailure::Lost(format!("node {node} is gone"))),
        };
        if let (Ok(response), Target::Group(group)) = (&response, &request.target) {
            pending.report(group, response.wait);
        }
        response
    }

    /// Sends a request whose reply nobody waits for to a node, and waits until it is there.
    pub(crate) async fn hand_over(
        &self,
        node: &NodeId,
        request: &Request,
        within: Duration,
    ) -> Tried {
        if node == self.me() {
            let handled = self.directory.handle(request.clone());
            let handled = timeout_at(Instant::now() + within, handled).await;
            return handled.map_err(|_| SendFailure::Late);
        }
        let Some(nats) = self.nats() else {
            return Err(SendFailure::NoResponders);
        };
        nats.ask(nats.subject_of(node, request), request, within)
            .await
    }

    /// Returns `true` if this node hosts entities of this kind.
    pub(crate) fn hosts(&self, actor: &str) -> bool {
        !self.is_draining.load(Ordering::Relaxed) && self.directory.hosts(actor)
    }

    /// Sends a request for a group of which no member is known to whichever there is.
    async fn send_to_any(&self, request: &Request) -> Tried {
        let Some(nats) = self.nats() else {
            return Err(SendFailure::NoResponders);
        };
        let timeout = request.timeout.unwrap_or_default();
        nats.ask(nats.subjects.of_group(request), request, timeout)
            .await
    }

    /// Returns the reply, or the error and whether another member may be asked.
    fn outcome(
        &self,
        request: &Request,
        tried: Tried,
        node: Option<&NodeId>,
        after: Duration,
    ) -> Result<Bytes, (RemoteError, bool)> {
        match tried {
            Ok(response) => response.outcome.map_err(|rejection| {
                let is_for_another = rejection.is_for_another();
                let error = rejected(request, rejection, after);
                (error, is_for_another)
            }),
            Err(SendFailure::NoResponders) => {
                // It was not there any more, or not yet: nobody had the request.
                Err((no_such(request, self.offered(&request.target)), true))
            }
            Err(failure) => {
                let is_for_another = matches!(failure, SendFailure::TooMany);
                Err((failed(request, failure, node, after), is_for_another))
            }
        }
    }

    fn offered(&self, target: &Target) -> Vec<String> {
        match target {
            Target::Group(group) => self.table.offered(group),
            Target::Entity(_) => Vec::new(),
        }
    }

    pub(crate) async fn tell(&self, request: Request) -> Result<(), RemoteError> {
        self.meters.told();
        if matches!(request.target, Target::Entity(_)) {
            return self.tell_entity(request).await;
        }
        let Some(node) = self.member(&request, &[]) else {
            return Err(no_such(&request, self.offered(&request.target)));
        };
        if node == *self.me() {
            let response = self.directory.handle(request.clone()).await;
            let told = response.outcome.map(|_| ());
            return told.map_err(|rejection| rejected(&request, rejection, Duration::ZERO));
        }
        let Some(nats) = self.nats() else {
            return Err(no_such(&request, Vec::new()));
        };
        let subject: Subject = nats.subject_of(&node, &request);
        nats.tell(subject, &request).await.map_err(|error| {
            let failure = SendFailure::Lost(error.to_string());
            failed(&request, failure, Some(&node), Duration::ZERO)
        })
    }

    /// Handles a durable message of a process alone.
    pub(crate) async fn handle_durable(&self, request: Request) -> Response {
        match &request.target {
            Target::Group(_) => self.directory.handle(request).await,
            Target::Entity(_) => self.pass_to_entity(request).await,
        }
    }

    pub(crate) async fn deliver(
        self: &Arc<Self>,
        request: Request,
        timeout: Duration,
    ) -> Result<Delivery, RemoteError> {
        deliver::deliver(self, request, timeout).await
    }
}
