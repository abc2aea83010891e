//! The host of a kind of entity at a node.

mod activate;
mod guardian;
mod queued;
mod runner;
mod settings;
mod status;
mod table;
mod tasks;

pub(crate) use guardian::Make;
pub use settings::HostSettings;
pub use status::HostStatus;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom_actor::{ActorRef, ActorSystem, SpawnError};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use self::activate::{Active, not_active};
use self::guardian::Guardian;
use self::queued::{Outcome, Queued};
use self::runner::{Begin, run};
use self::status::Counts;
use self::table::{Offer, Table, TableLimits};
use super::Entity;
use super::cell::Keeper;
use super::key::kind_of;
use super::lease::Leases;
use super::storage::Storage;
use crate::meters::Meters;
use crate::names::EntityId;
use crate::remote::Handlers;
use crate::wire::{Inbound, Rejection, Request, Response, Target};

const TARGET: &str = "greenroom::cluster";

/// The host of a kind of entity: activates those that messages come for, gives them their messages
/// one by one and in order, and passivates them when they are idle.
///
/// When the node's own lease ends all activations end at once, for others may take them over. The
/// host takes messages again when the node has a lease again.
pub(crate) struct Host<E: Entity> {
    settings: HostSettings,
    handlers: Handlers<E>,
    guardian: ActorRef<Guardian<E>>,
    leases: Arc<dyn Leases>,
    keeper: Arc<Keeper>,
    table: Mutex<Table<Active<E>, Queued>>,
    in_flight: Arc<Semaphore>,
    activating: Semaphore,
    passivating: Arc<Semaphore>,
    /// The largest fence of its activations.
    pub(super) last_fence: AtomicU64,
    /// The moment until which the node's lease holds; `None` for ever.
    held_until: watch::Receiver<Option<Instant>>,
    /// The number of times that the node lost its lease.
    terms: AtomicU64,
    is_draining: AtomicBool,
    /// Notified when a runner ends.
    changed: Notify,
    counts: Counts,
    meters: Arc<Meters>,
}

/// The parts of a node that a host uses.
pub(crate) struct HostParts {
    pub(crate) leases: Arc<dyn Leases>,
    /// The storage, unless the settings have one.
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) held_until: watch::Receiver<Option<Instant>>,
    /// The time for which the node's lease holds without renewal.
    pub(crate) lease: Duration,
    /// The time within which a durable message comes again that was handled already.
    pub(crate) repeated_within: Duration,
    pub(crate) meters: Arc<Meters>,
}

impl<E: Entity> Host<E> {
    /// Starts a host. It goes on as long as the tasks do.
    pub(crate) fn start(
        system: &ActorSystem,
        settings: HostSettings,
        make: Make<E>,
        parts: HostParts,
    ) -> Result<(Arc<Self>, JoinSet<()>), SpawnError> {
        let keeper = Keeper {
            storage: settings.storage.clone().unwrap_or(parts.storage),
            bytes_max: settings.state_bytes_max,
            applied_max: settings.applied_max,
            kept_for: parts.repeated_within,
        };
        let host = Arc::new(Self {
            handlers: Handlers::of_actor(),
            guardian: Guardian::spawn(system, &settings, make)?,
            leases: parts.leases,
            keeper: Arc::new(keeper),
            table: Mutex::new(Table::new()),
            in_flight: Arc::new(Semaphore::new(settings.in_flight_max)),
            activating: Semaphore::new(settings.activating_max),
            passivating: Arc::new(Semaphore::new(settings.activating_max)),
            last_fence: AtomicU64::new(0),
            held_until: parts.held_until,
            terms: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            changed: Notify::new(),
            counts: Counts::default(),
            meters: parts.meters,
            settings,
        });
        let tasks = tasks::start(&host, parts.lease);
        Ok((host, tasks))
    }

    pub(in crate::entity) fn status(&self) -> HostStatus {
        let table = self.table.lock();
        let (entities, idle) = (table.len(), table.idle());
        drop(table);
        let in_flight = self.settings.in_flight_max - self.in_flight.available_permits();
        self.counts.read(Self::kind(), entities, idle, in_flight)
    }

    /// Takes no more messages, from now on, lets the entities handle those that wait, passivates
    /// them and gives their leases back.
    pub(crate) fn drain(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<E> {
        self.is_draining.store(true, Ordering::Relaxed);
        let host = Arc::clone(self);
        async move { host.end_idle().await }
    }

    async fn end_idle(self: &Arc<Self>) {
        self.passivate_idle(|_| true).await;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listened to before the look, or the end of the last runner could go unnoticed.
            changed.as_mut().enable();
            if self.table.lock().len() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Ends all activations, without a word to anybody.
    pub(crate) fn end_all(&self) {
        self.terms.fetch_add(1, Ordering::SeqCst);
        let ended = self.table.lock().end_all();
        for active in ended {
            active.cell.end();
            active.actor.kill();
        }
    }

    /// Ends the entities that are busy, and lets their runners give the leases back.
    pub(crate) fn end_busy(&self) {
        let busy = self.table.lock().busy();
        for active in busy {
            active.cell.end();
            active.actor.kill();
        }
    }

    /// Ends the actors of all entities.
    pub(crate) fn stop(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.end_all();
        self.guardian.kill();
    }

    fn kind() -> &'static str {
        kind_of(E::NAME)
    }

    /// Returns `true` as long as the node's lease holds.
    fn is_held(&self) -> bool {
        let until = *self.held_until.borrow();
        until.is_none_or(|until| Instant::now() < until)
    }

    /// Returns a number that changes when the node loses its lease.
    fn term(&self) -> Result<u64, Rejection> {
        if !self.is_held() {
            return Err(not_active("the node has lost its lease"));
        }
        Ok(self.terms.load(Ordering::SeqCst))
    }

    /// Returns `true` if an entity may stay active. Called with the table locked: who ends all
    /// changes the term before that, and then ends what is idle there.
    fn may_rest(&self, active: &Active<E>) -> bool {
        !self.is_draining() && self.is_held() && !self.is_over(active)
    }

    /// Returns the moment since which an entity counts as idle: now, or so much later that it is
    /// passivated when its old ids can be forgotten.
    fn resting_since(&self, active: Option<&Active<E>>) -> Instant {
        let now = Instant::now();
        let tidy = active.and_then(|active| active.cell.tidy_at());
        let since = tidy.and_then(|at| at.checked_sub(self.settings.passivate_after));
        since.map_or(now, |since| since.max(now))
    }

    /// Returns `true` if the activation must not go on.
    fn is_over(&self, active: &Active<E>) -> bool {
        active.has_ended() || active.term != self.terms.load(Ordering::SeqCst)
    }

    /// Gives a message to its entity, or says why not.
    fn offer(self: &Arc<Self>, request: Request) -> Result<oneshot::Receiver<Outcome>, Rejection> {
        let id = self.check(&request)?;
        let in_flight = Arc::clone(&self.in_flight).try_acquire_owned();
        let permit = in_flight.map_err(|_| Rejection::busy(None))?;
        let (queued, outcome) = Queued::new(request, permit);
        let offer = self.table.lock().offer(&id, queued, &self.limits());
        match offer {
            Offer::Queued => {}
            Offer::Full(_) => return Err(Rejection::busy(None)),
            Offer::Begin { active, evicted } => {
                self.run(id, Begin::Run(active));
                if let Some((id, active)) = evicted {
                    self.run(id, Begin::Passivate(active));
                }
            }
        }
        Ok(outcome)
    }

    fn limits(&self) -> TableLimits {
        TableLimits {
            active_max: self.settings.active_max,
            evicted_max: self.settings.activating_max,
            queue_max: self.settings.queue_max,
        }
    }

    fn check(&self, request: &Request) -> Result<EntityId, Rejection> {
        let Target::Entity(id) = &request.target else {
            let offered = Vec::new();
            return Err(Rejection::NoSuchActor { offered });
        };
        if self.is_draining() {
            return Err(Rejection::Draining);
        }
        self.term()?;
        if !self.handlers.has(&request.message) {
            let known = self.handlers.names().map(str::to_owned).collect();
            return Err(Rejection::NoSuchMessage { known });
        }
        Ok(id.clone())
    }

    fn run(self: &Arc<Self>, id: EntityId, begin: Begin<E>) {
        tokio::spawn(run(Arc::clone(self), id, begin));
    }
}

impl<E: Entity> Inbound for Host<E> {
    fn handle(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        Box::pin(async move {
            let within = request.timeout;
            let outcome = match self.offer(request) {
                Ok(outcome) => outcome,
                Err(rejection) => return Response::rejected(rejection),
            };
            let outcome = match within {
                Some(within) => timeout(within, outcome).await,
                None => Ok(outcome.await),
            };
            let outcome = match outcome {
                Ok(outcome) => outcome.unwrap_or(Err(Rejection::Ended)),
                Err(_) => Err(Rejection::Late),
            };
            Response {
                outcome,
                wait: self.wait(),
            }
        })
    }

    /// There is no choice between hosts: an entity is where it is.
    fn wait(&self) -> Duration {
        Duration::ZERO
    }

    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    fn host_status(&self) -> Option<HostStatus> {
        Some(self.status())
    }
}
