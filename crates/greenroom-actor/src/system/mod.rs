//! Actor systems: a tree of actors, its dispatchers, its dead letters.

mod builder;
mod counts;
mod gauges;
mod guardian;
mod presence;
mod registry;
mod settings;
mod shutdown;
mod spawn;
mod status;
mod template;

pub use builder::{ActorSystemBuilder, BuildError};
pub(crate) use gauges::Gauges;
pub(crate) use registry::{end_actors_of, find_anywhere};
pub(crate) use settings::Settings;
pub use shutdown::ShutdownReport;
pub use spawn::{Spawn, SpawnError};
pub use status::{
    ActorSystemStatus, DeadLetterCounts, STATUS_ACTORS_MAX, TypeStatus, status, status_within,
};
pub(crate) use template::Template;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::actor::Actor;
use crate::cell::{AnyCell, Signal};
use crate::dead_letter::DeadLetters;
use crate::dispatcher::{Core, Dispatcher};
use crate::events::EventStream;
use crate::id::ActorId;
use crate::reference::ActorRef;
use presence::Presence;
use settings::Types;

/// A tree of actors, with the dispatchers that run them. Clones are the same system. It goes on
/// when all clones are dropped, as long as an actor of it lives, until it is [shut
/// down](Self::shutdown) or its runtime ends. The threads of its dispatchers end with it.
#[derive(Clone)]
pub struct ActorSystem(Presence, Arc<dyn AnyCell>);

pub(crate) struct SystemShared {
    name: String,
    pub(crate) dead_letters: DeadLetters,
    events: EventStream,
    /// The number of handles of the system, and of spawns without one.
    users: AtomicUsize,
    /// The number of connections whose close frame is not yet written.
    #[cfg(feature = "web")]
    pub(crate) connections: tokio::sync::watch::Sender<usize>,
    dispatchers: BTreeMap<String, Registered>,
    types: Types,
    /// Weak, as its actors and handles of the system keep it: a strong reference here would be a
    /// cycle.
    root: OnceLock<Weak<dyn AnyCell>>,
}

/// A dispatcher under its name.
pub(crate) enum Registered {
    Started(Arc<Core>),
    /// A dispatcher that is started for each runtime or each actor.
    Template(Dispatcher, settings::Instances),
}

static IDS: AtomicU64 = AtomicU64::new(1);

impl ActorSystem {
    /// Creates a system with the default settings, whose actors run on the current tokio runtime.
    /// Outside of a runtime they run on a pool of threads, one for each core.
    ///
    /// # Errors
    ///
    /// If the system gives no threads.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// Returns the settings of a system, to begin with the defaults.
    #[must_use]
    pub fn builder() -> ActorSystemBuilder {
        ActorSystemBuilder::default()
    }

    /// Spawns an actor at the top of the tree. The function makes its state, and makes it again for
    /// each restart. After [`shutdown`](Self::shutdown) the actor ends before it begins.
    pub fn spawn<A: Actor>(&self, make: impl Fn() -> A + Send + 'static) -> ActorRef<A> {
        self.build(make).spawn_or_end()
    }

    /// Like [`spawn`](Self::spawn), with settings.
    pub fn build<A: Actor>(&self, make: impl Fn() -> A + Send + 'static) -> Spawn<A> {
        Spawn::new(&self.0, Some(Arc::clone(&self.1)), Box::new(make)).by(self.0.clone())
    }

    /// Returns the dead letters of the system.
    #[must_use]
    pub fn dead_letters(&self) -> &DeadLetters {
        &self.0.dead_letters
    }

    /// Returns the event stream: events by their type, to the actors that subscribed to it.
    #[must_use]
    pub fn events(&self) -> &EventStream {
        &self.0.events
    }

    /// Returns the system's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns `true` if [`shutdown`](Self::shutdown) has begun.
    #[cfg(feature = "web")]
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.1.lane().is_closed()
    }

    #[cfg(feature = "web")]
    pub(crate) fn shared(&self) -> &Arc<SystemShared> {
        &self.0
    }

    /// Returns the system of an actor that lives, and so has a root above it.
    pub(crate) fn of(shared: &Arc<SystemShared>) -> Self {
        let root = shared.root().expect("an actor keeps those above it");
        Self(Presence::new(Arc::clone(shared)), root)
    }
}

impl fmt::Debug for ActorSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ActorSystem").field(&self.0.name).finish()
    }
}

impl SystemShared {
    fn root(&self) -> Option<Arc<dyn AnyCell>> {
        self.root.get()?.upgrade()
    }

    /// Releases what holds the system, as the root has ended.
    pub(crate) fn let_go(&self) {
        for core in self.cores() {
            core.close();
        }
        self.events.clear();
        self.dead_letters.clear();
        self.types.close();
    }

    /// Returns `true` if code outside of actors may still spawn one.
    pub(crate) fn is_used(&self) -> bool {
        self.users.load(Ordering::Acquire) > 0
    }

    /// Iterates over all actors, the root among them, parents before their children.
    pub(crate) fn actors(&self) -> impl Iterator<Item = Arc<dyn AnyCell>> {
        let mut unseen: Vec<_> = self.root().into_iter().collect();
        std::iter::from_fn(move || {
            let actor = unseen.pop()?;
            unseen.extend(actor.children());
            Some(actor)
        })
    }

    /// Kills the actors of a dispatcher whose workers are gone.
    fn end_actors_of(&self, dispatcher: &Core) {
        for actor in self.actors() {
            if std::ptr::eq(&raw const *actor.settings().dispatcher, dispatcher) {
                actor.signal(Signal::Kill);
            }
        }
    }

    /// Finds the actor with this number, if it lives. Looks at the whole tree.
    pub(crate) fn find(&self, id: ActorId) -> Option<Arc<dyn AnyCell>> {
        self.actors().find(|actor| actor.id() == id)
    }

    /// Returns all dispatchers that run.
    pub(crate) fn cores(&self) -> Vec<Arc<Core>> {
        self.dispatchers
            .values()
            .flat_map(Registered::cores)
            .collect()
    }
}

fn next_id() -> ActorId {
    ActorId(IDS.fetch_add(1, Ordering::Relaxed))
}
