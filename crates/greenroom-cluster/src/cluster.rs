use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use greenroom_actor::{ActorRef, ActorSystem, Recipient};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

use crate::core::Core;
use crate::directory::PublishError;
use crate::entity::{Activation, Entity, HostError, HostSettings, Hosting};
use crate::group::{Publication, PublishSettings};
use crate::names::{EntityId, NameError, check_kind, check_token};
use crate::nats::{ConnectError, Nats, retry};
use crate::node::{MemberEvent, MemberEvents, NodeId, Watcher, WriteError};
use crate::remote::{Remote, RemoteActor};
use crate::settings::{ClusterSettings, Limits};
use crate::status::{ClusterStatus, DurableStatus};
use crate::wire::Target;

/// The durable messages are counted this often, for the status.
const MEASURED_EVERY: Duration = Duration::from_secs(5);

/// The time that the others have to hear that this node drains.
const GOODBYE: Duration = Duration::from_millis(200);

/// A node of a cluster; cheap to clone. When the last clone is dropped the node leaves without a
/// word, and is missed when its lease ends: [`drain`](Self::drain) says goodbye.
#[derive(Clone)]
pub struct Cluster(Arc<Handle>);

struct Handle {
    core: Arc<Core>,
    /// The record's renewal, the watch of the others, the subscription of this node.
    _tasks: JoinSet<()>,
}

impl Cluster {
    /// Creates a cluster of this process alone: everything runs here, through the same API.
    /// Messages are encoded as they would be. Durable ones and states last as long as the process.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, when something is published.
    #[must_use]
    pub fn local() -> Self {
        let core = Core::new(Limits::default(), None);
        Self(Arc::new(Handle {
            core: Arc::new(core),
            _tasks: JoinSet::new(),
        }))
    }

    /// Joins the cluster of these servers.
    ///
    /// # Errors
    ///
    /// The reason, within [`connect_timeout`](ClusterSettings::connect_timeout) for each step. A
    /// connection that is lost later is made again for ever; meanwhile asks fail as late or lost.
    pub async fn connect(settings: ClusterSettings) -> Result<Self, ConnectError> {
        // Boxed: it is large, and its caller would carry it.
        let nats = Box::pin(Nats::connect(&settings)).await?;
        let core = Arc::new(Core::new(settings.limits, Some(nats)));
        let mut tasks = JoinSet::new();
        Box::pin(join(&core, &mut tasks)).await?;
        Ok(Self(Arc::new(Handle {
            core,
            _tasks: tasks,
        })))
    }

    /// Makes an actor a member of a group, with the default settings.
    ///
    /// # Errors
    ///
    /// See [`PublishError`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn publish<A: RemoteActor>(
        &self,
        group: &str,
        actor: &ActorRef<A>,
    ) -> Result<Publication, PublishError> {
        self.publish_with(group, actor, PublishSettings::default())
    }

    /// Makes an actor a member of a group.
    ///
    /// # Errors
    ///
    /// See [`PublishError`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn publish_with<A: RemoteActor>(
        &self,
        group: &str,
        actor: &ActorRef<A>,
        settings: PublishSettings,
    ) -> Result<Publication, PublishError> {
        Publication::new(self.core(), group, actor, settings)
    }

    /// Returns a reference to any member of a group. There need not be one yet.
    ///
    /// # Errors
    ///
    /// The name cannot be used.
    pub fn actor<A: RemoteActor>(&self, group: &str) -> Result<Remote<A>, NameError> {
        check_token("the group", group)?;
        check_kind(A::NAME)?;
        Ok(Remote::new(self.clone(), Target::Group(group.into())))
    }

    /// Hosts the entities of a kind at this node, with the default settings: those that messages
    /// come for, and that are active nowhere else. `make` creates the actor of an activation.
    ///
    /// # Errors
    ///
    /// See [`HostError`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn host<E: Entity>(
        &self,
        system: &ActorSystem,
        make: impl Fn(Activation<E::State>) -> E + Send + Sync + 'static,
    ) -> Result<Hosting, HostError> {
        self.host_with(system, HostSettings::default(), make)
    }

    /// Hosts the entities of a kind at this node. Their actors are spawned in this system, as
    /// `make` creates them: it may hand them whatever they need, such as a database.
    ///
    /// # Errors
    ///
    /// See [`HostError`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn host_with<E: Entity>(
        &self,
        system: &ActorSystem,
        settings: HostSettings,
        make: impl Fn(Activation<E::State>) -> E + Send + Sync + 'static,
    ) -> Result<Hosting, HostError> {
        Hosting::new::<E>(self.core(), system, settings, Arc::new(make))
    }

    /// Returns a reference to an entity, active or not.
    ///
    /// # Errors
    ///
    /// The name of its kind, or its id, cannot be used.
    pub fn entity<E: Entity>(
        &self,
        id: impl TryInto<EntityId, Error: Into<NameError>>,
    ) -> Result<Remote<E>, NameError> {
        check_kind(E::NAME)?;
        let id = id.try_into().map_err(Into::into)?;
        Ok(Remote::new(self.clone(), Target::Entity(id)))
    }

    /// Waits until a host of this kind of entity is known here.
    pub async fn host_known<E: Entity>(&self) {
        let core = self.core();
        let mut changes = core.table.changes();
        let is_known = || core.hosts(E::NAME) || core.table.place(E::NAME, 0, &[]).is_some();
        // The sender is in `core`, so the wait cannot fail.
        let _ = changes.wait_for(|_| is_known()).await;
    }

    /// Tells an actor of the members of a group that are there, and from now on of each that joins,
    /// leaves or is lost. A member may be told of twice. Returns `false` if there are already 1,024
    /// that are told.
    #[must_use]
    pub fn watch<A: RemoteActor>(&self, group: &str, recipient: Recipient<MemberEvent>) -> bool {
        let members = MemberEvents(group, A::NAME);
        self.core().table.watch(members, recipient)
    }

    /// Waits until a member of the group is known here, other than those that are lost.
    pub async fn member_known<A: RemoteActor>(&self, group: &str) {
        let core = self.core();
        let mut changes = core.table.changes();
        let is_known = || core.table.pick_member(group, A::NAME, &[]).is_some();
        // The sender is in `core`, so the wait cannot fail.
        let _ = changes.wait_for(|_| is_known()).await;
    }

    /// Returns the identity of this node.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        self.core().me()
    }

    /// Returns the state of the cluster, as this node sees it.
    #[must_use]
    pub fn status(&self) -> ClusterStatus {
        ClusterStatus::of(self.core())
    }

    /// Takes nothing new from other nodes, tells them so, and waits until the connection has sent
    /// what there is to send; at most this long. Publications and hostings are to be
    /// left first ([`Publication::leave`], [`Hosting::leave`](crate::Hosting::leave)), as they know
    /// what is under way: what is still active here is not to be relied on any more.
    pub async fn drain(&self, within: Duration) {
        let core = self.core();
        core.is_draining.store(true, Ordering::Relaxed);
        let Some(nats) = core.nats() else {
            return core.note_change();
        };
        let begin = Instant::now();
        let left = || within.saturating_sub(begin.elapsed());
        let _ = timeout(left(), core.announced()).await;
        sleep(GOODBYE.min(left())).await;
        let _ = timeout(left(), core.membership.remove(&nats.stores.nodes)).await;
        let _ = timeout(left(), nats.client.flush()).await;
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }
}

/// Makes this node known, and begins to take requests.
async fn join(core: &Arc<Core>, tasks: &mut JoinSet<()>) -> Result<(), ConnectError> {
    let Some(nats) = core.nats() else {
        return Ok(());
    };
    let subject = nats.subjects.all_of_node(core.me());
    let subscriber = nats.client.subscribe(subject).await?;
    tasks.spawn(Nats::serve(Arc::downgrade(core), subscriber));
    let membership = Arc::clone(&core.membership);
    retry(core.limits.connect_timeout, || async {
        let written = membership.write(&nats.stores, &core.record()).await;
        written.map_err(|error| match error {
            WriteError::Lease(error) => error,
            error => ConnectError::join(error),
        })
    })
    .await?;
    let watcher = Watcher {
        client: nats.client.clone(),
        bucket: nats.stores.nodes.clone(),
        table: Arc::clone(&core.table),
        me: core.me().clone(),
        lease: core.limits.lease,
    };
    tasks.spawn(watcher.follow());
    let name = core.limits.node_name.clone();
    tasks.spawn(membership.keep(Arc::downgrade(core)));
    tasks.spawn(measure(Arc::downgrade(core)));
    tracing::info!(target: "greenroom::cluster", node = %core.me(), name, "joined the cluster");
    Ok(())
}

/// Asks for the number of durable messages again and again, for the status.
async fn measure(core: Weak<Core>) {
    let mut interval = interval(MEASURED_EVERY);
    loop {
        interval.tick().await;
        let Some(core) = core.upgrade() else { return };
        let Some(nats) = core.nats() else { return };
        let info = timeout(MEASURED_EVERY, nats.stores.durable.get_info()).await;
        let state = info.ok().and_then(Result::ok).map(|info| info.state);
        *core.durable.lock() = state.map(|state| DurableStatus {
            messages: state.messages,
            bytes: state.bytes,
        });
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("node", self.node())
            .field("is_local", &self.core().nats().is_none())
            .finish_non_exhaustive()
    }
}
