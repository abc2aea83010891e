use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_actor::{ActorSystem, SpawnError};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Entity;
use super::host::{Host, HostParts, HostSettings, HostStatus, Make};
use super::kv::Bucket;
use super::lease::{JetStreamLeases, Leases};
use super::storage::{JetStreamStorage, Storage};
use crate::core::Core;
use crate::deliver;
use crate::directory::PublishError;
use crate::names::check_kind;
use crate::wire::Inbound;

/// The longest wait until the others know that a host leaves.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(2);
/// The time that a host which is dropped takes to passivate its entities.
const DROPPED_WITHIN: Duration = Duration::from_secs(10);

/// A node's hosting of a kind of entity. Dropped, the host takes no more messages, and passivates
/// its entities within 10 s; [`leave`](Self::leave) waits for that.
#[must_use = "the node stops to host the entities when this is dropped"]
pub struct Hosting {
    core: Arc<Core>,
    actor: &'static str,
    host: Arc<dyn Hosted>,
    tasks: JoinSet<()>,
    stop_durable: watch::Sender<bool>,
}

/// The reason for which a node cannot host a kind of entity.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The name cannot be used, or the node hosts the kind already.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The parent of the entities was not spawned.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// A host, whatever kind it is of.
trait Hosted: Inbound {
    /// Returns the largest fence of its activations until now.
    fn last_fence(&self) -> u64;
    fn drain(self: Arc<Self>) -> BoxFuture<'static, ()>;
    fn end_busy(&self);
    fn stop(&self);
}

impl<E: Entity> Hosted for Host<E> {
    fn last_fence(&self) -> u64 {
        self.last_fence.load(Ordering::Relaxed)
    }

    fn drain(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Self::drain(&self).boxed()
    }

    fn end_busy(&self) {
        Self::end_busy(self);
    }

    fn stop(&self) {
        Self::stop(self);
    }
}

impl Hosting {
    pub(crate) fn new<E: Entity>(
        core: &Arc<Core>,
        system: &ActorSystem,
        settings: HostSettings,
        make: Make<E>,
    ) -> Result<Self, HostError> {
        check_kind(E::NAME).map_err(PublishError::from)?;
        let durable_max = settings.durable_in_flight_max;
        let (host, tasks) = Host::start(system, settings, make, parts(core))?;
        let added = core.directory.add_host(E::NAME, Arc::clone(&host) as _);
        if let Err(error) = added {
            host.stop();
            return Err(error.into());
        }
        let mut hosting = Self {
            core: Arc::clone(core),
            actor: E::NAME,
            host,
            tasks,
            stop_durable: watch::Sender::new(false),
        };
        hosting.take_durable(durable_max);
        hosting.core.note_change();
        Ok(hosting)
    }

    /// Begins to pass on durable messages for entities of this kind, wherever they are active.
    fn take_durable(&mut self, durable_max: usize) {
        let Some(nats) = self.core.nats() else { return };
        let core = Arc::downgrade(&self.core);
        let consumer = deliver::Consumer {
            core: core.clone(),
            filter: nats.subjects.durable_of_kind(self.actor),
            name: deliver::consumer_name(&["entity", self.actor]),
            in_flight_max: durable_max,
            give_up: deliver::GiveUp::Each,
            handle: Arc::new(move |request| {
                let core = core.upgrade();
                async move {
                    match core {
                        Some(core) => core.pass_to_entity(request).await,
                        None => crate::wire::Response::rejected(crate::wire::Rejection::Ended),
                    }
                }
                .boxed()
            }),
            stop: self.stop_durable.subscribe(),
        };
        self.tasks.spawn(consumer.run());
    }

    /// Waits until the other nodes have been told of the host.
    pub async fn announced(&self) {
        self.core.announced().await;
    }

    /// Returns the numbers of the host at about this moment.
    #[must_use]
    pub fn status(&self) -> HostStatus {
        self.host.host_status().unwrap_or_default()
    }

    /// Stops hosting: other nodes are told, the entities handle what waits for them, are passivated
    /// and can be activated elsewhere. What comes in between is rejected and goes there. Returns
    /// `false` if that took longer than `within`; then those that are busy end at once.
    pub async fn leave(self, within: Duration) -> bool {
        self.stop_durable.send_replace(true);
        let draining = Arc::clone(&self.host).drain();
        let draining = tokio::spawn(timeout(within, draining));
        self.core.note_change();
        let _ = timeout(ANNOUNCED_WITHIN, self.core.announced()).await;
        let is_drained = matches!(draining.await, Ok(Ok(())));
        if !is_drained {
            self.host.end_busy();
        }
        is_drained
    }
}

impl Drop for Hosting {
    fn drop(&mut self) {
        self.core.directory.remove_host(self.actor);
        self.core.note_change();
        let (core, actor) = (Arc::downgrade(&self.core), self.actor);
        let host = Arc::clone(&self.host);
        let end = move || {
            host.stop();
            if let Some(core) = core.upgrade() {
                core.directory.note_ended(actor, host.last_fence());
                core.note_change();
            }
        };
        // Outside of a runtime nothing runs that could be passivated.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return end();
        };
        let draining = timeout(DROPPED_WITHIN, Arc::clone(&self.host).drain());
        runtime.spawn(async move {
            let _ = draining.await;
            end();
        });
    }
}

impl fmt::Debug for Hosting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosting")
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}

/// Returns the parts of a node that a host uses.
fn parts(core: &Core) -> HostParts {
    let me = core.me().as_str();
    let (leases, storage): (Arc<dyn Leases>, Arc<dyn Storage>) = match core.nats() {
        Some(nats) => {
            let stores = &nats.stores;
            let bucket = |store| Bucket::new(&stores.jetstream, store);
            let leases = JetStreamLeases::new(bucket(&stores.leases), bucket(&stores.nodes), me);
            let bytes_max = nats.client.max_payload();
            let storage = JetStreamStorage::new(bucket(&stores.states), bytes_max);
            (Arc::new(leases), Arc::new(storage))
        }
        None => (
            Arc::new(core.entities.local_nodes.register(me)),
            Arc::new(core.entities.local_states.clone()),
        ),
    };
    HostParts {
        leases,
        storage,
        held_until: core.membership.until(),
        lease: core.membership.lease,
        repeated_within: deliver::repeated_within(core.limits.redeliver_after),
        meters: Arc::clone(&core.meters),
    }
}
