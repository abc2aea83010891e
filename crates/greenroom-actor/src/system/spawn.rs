use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::presence::Presence;
use super::settings::{DISPATCHER_DEFAULT, Overrides};
use super::{SystemShared, next_id};
use crate::actor::Actor;
use crate::cell::{AnyCell, Body, NotAdopted, Shared, Signal, Watcher};
use crate::context::Context;
use crate::dispatcher::DispatcherError;
use crate::id::ActorId;
use crate::limits::Limits;
use crate::mailbox::Mailbox;
use crate::path::ActorPath;
use crate::raw::{ActorCell, StateCell, Turn};
use crate::reference::ActorRef;
use crate::supervision::Supervision;
use crate::watched::Tie;

/// An actor that is about to be spawned, with settings.
#[must_use = "nothing is spawned before `spawn`"]
pub struct Spawn<A: Actor> {
    pub(super) system: Arc<SystemShared>,
    /// `None` if the system has ended.
    pub(super) parent: Option<Arc<dyn AnyCell>>,
    pub(super) factory: Box<dyn Fn() -> A + Send>,
    pub(super) name: Option<Box<str>>,
    pub(super) dispatcher: Option<String>,
    pub(super) overrides: Overrides,
    pub(super) watcher: Option<Watcher>,
    /// `Some` if the spawner is no actor.
    pub(super) user: Option<Presence>,
}

/// The reason for which an actor was not spawned.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// Its dispatcher is not there, or could not be started.
    #[error(transparent)]
    Dispatcher(#[from] DispatcherError),
    /// Its parent has as many children as it may have.
    #[error(
        "{} has {children_max} children, and may have no more (`Limits::children`)",
        parent_name(parent)
    )]
    TooManyChildren {
        /// The path of the parent; empty at the top of the tree.
        parent: ActorPath,
        /// The number that it may have.
        children_max: u32,
    },
}

fn parent_name(parent: &ActorPath) -> String {
    if parent == "" {
        "the top of the tree".to_owned()
    } else {
        parent.to_string()
    }
}

impl<A: Actor> Spawn<A> {
    pub(crate) fn new(
        system: &Arc<SystemShared>,
        parent: Option<Arc<dyn AnyCell>>,
        factory: Box<dyn Fn() -> A + Send>,
    ) -> Self {
        Self {
            system: Arc::clone(system),
            parent,
            factory,
            name: None,
            dispatcher: None,
            overrides: Overrides::default(),
            watcher: None,
            user: None,
        }
    }

    pub(super) fn by(mut self, user: Presence) -> Self {
        self.user = Some(user);
        self
    }

    /// Adds a watcher of its end that is no actor.
    #[cfg(feature = "web")]
    pub(crate) fn watched_by(
        mut self,
        watcher: impl FnOnce(crate::Terminated) + Send + 'static,
    ) -> Self {
        self.watcher = Some(Box::new(watcher));
        self
    }

    /// Sets the actor's name in its path, instead of its type and number. Need not be unique.
    pub fn name(self, name: impl Into<Box<str>>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }

    /// Sets the mailbox, instead of that of the type ([`Actor::mailbox`]).
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.overrides.mailbox = Some(mailbox);
        self
    }

    /// Sets the supervision of its children, instead of that of the type ([`Actor::supervision`]).
    pub fn supervision(mut self, supervision: Supervision) -> Self {
        self.overrides.supervision = Some(supervision);
        self
    }

    /// Sets the limits on children, timers and watchers, instead of those of the type
    /// ([`Actor::limits`]).
    pub fn limits(mut self, limits: Limits) -> Self {
        self.overrides.limits = Some(limits);
        self
    }

    /// Sets the dispatcher that runs the actor, by its name. Default: the system's default
    /// dispatcher.
    pub fn dispatcher(self, name: impl Into<String>) -> Self {
        Self {
            dispatcher: Some(name.into()),
            ..self
        }
    }

    /// Spawns the actor.
    ///
    /// # Errors
    ///
    /// If there is no dispatcher of that name, it could not be started here, or the parent may have
    /// no more children.
    pub fn spawn(self) -> Result<ActorRef<A>, SpawnError> {
        self.hand_over().map_err(|(error, _)| error)
    }

    /// Spawns the actor. With an error there may be an actor too, which ends before it begins.
    fn hand_over(self) -> Result<ActorRef<A>, (SpawnError, Option<ActorRef<A>>)> {
        let name = self.dispatcher.as_deref().unwrap_or(DISPATCHER_DEFAULT);
        let dispatcher = self
            .system
            .dispatcher(name)
            .map_err(|error| (error.into(), None))?;
        let settings = self
            .system
            .types
            .settings::<A>(&self.system, dispatcher, self.overrides);
        let cell = make(self.parent.clone(), settings, self.name, self.factory);
        if let Some(watcher) = self.watcher {
            cell.watch(ActorId::OUTSIDE, Tie::Watch, watcher);
        }
        hand_over(self.parent.as_ref(), cell)
    }

    /// Spawns the actor on the default dispatcher, which is always there. Beyond the parent's limit
    /// it ends before it begins.
    pub(crate) fn spawn_or_end(self) -> ActorRef<A> {
        match self.hand_over() {
            Ok(actor) => actor,
            Err((error, Some(ended))) => {
                tracing::error!(target: "greenroom::actor", %error, "no actor was spawned");
                ended
            }
            Err((error, None)) => panic!("the default dispatcher: {error}"),
        }
    }
}

impl<A: Actor> fmt::Debug for Spawn<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn hand_over<A: Actor>(
    parent: Option<&Arc<dyn AnyCell>>,
    cell: Arc<ActorCell<A>>,
) -> Result<ActorRef<A>, (SpawnError, Option<ActorRef<A>>)> {
    let turn = wake_up(&cell);
    let adopted = parent.map(|parent| (parent, parent.adopt(Arc::clone(&cell) as _)));
    if !matches!(adopted, Some((_, Ok(())))) {
        cell.signal_any(Signal::Kill);
    }
    cell.schedule(turn);
    let actor = ActorRef(cell);
    match adopted {
        Some((parent, Err(NotAdopted::Full))) => {
            let error = SpawnError::TooManyChildren {
                parent: ActorPath::new(Arc::clone(parent)),
                children_max: parent.settings().limits.children,
            };
            Err((error, Some(actor)))
        }
        _ => Ok(actor),
    }
}

pub(super) fn make<A: Actor>(
    parent: Option<Arc<dyn AnyCell>>,
    settings: Arc<super::Settings>,
    name: Option<Box<str>>,
    factory: Box<dyn Fn() -> A + Send>,
) -> Arc<ActorCell<A>> {
    settings.counts.spawned();
    let shared = Shared::new(next_id(), settings, parent, name);
    let body = Body::new(StateCell::new(Context::new()), factory);
    Arc::new(ActorCell::new(shared, body))
}

/// Schedules the first turn of an actor that has no parent.
pub(super) fn begin<A: Actor>(cell: &Arc<ActorCell<A>>) {
    let turn = wake_up(cell);
    cell.schedule(turn);
}

/// Gives a new actor the reference to itself. Returns its first turn.
fn wake_up<A: Actor>(cell: &Arc<ActorCell<A>>) -> Turn {
    let turn = cell.signal().expect("nobody else knows the actor yet");
    let body = cell.body(&turn);
    body.me.set(Some(Arc::clone(cell)));
    body.state
        .with_context(|context| context.introduce(ActorRef(Arc::clone(cell))));
    turn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatcher::{Core, unstarted};
    use crate::system::ActorSystem;
    use crate::{Context, Handler};

    struct Echo;

    impl Actor for Echo {}

    impl Handler<u32> for Echo {
        type Reply = u32;

        fn handle(&mut self, number: u32, _: &mut Context<Self>) -> u32 {
            number
        }
    }

    fn spawn_on(core: &Arc<Core>, system: &ActorSystem) -> ActorRef<Echo> {
        let (types, core) = (&system.0.types, Arc::clone(core));
        let settings = types.settings::<Echo>(&system.0, core, Overrides::default());
        let parent = Some(Arc::clone(&system.1));
        let cell = make(parent.clone(), settings, None, Box::new(|| Echo));
        let spawned = hand_over(parent.as_ref(), cell);
        spawned.map_err(|(error, _)| error).expect("it has room")
    }

    #[tokio::test(start_paused = true)]
    async fn the_actors_of_a_worker_that_is_lost_go_to_those_that_live() {
        let system = ActorSystem::new().expect("there is a runtime");
        let (core, mut workers) = unstarted(3);
        let mut actors: Vec<_> = (0..6).map(|_| spawn_on(&core, &system)).collect();
        drop(workers.pop());
        drop(workers.remove(0));
        actors.extend((0..6).map(|_| spawn_on(&core, &system)));
        let living = tokio::spawn(workers.remove(0));
        for actor in &actors {
            assert_eq!(actor.ask(7).await.expect("it is handled"), 7);
        }
        assert_eq!(core.status().workers, 1);
        living.abort();
        for actor in &actors {
            actor.terminated().await;
        }
    }
}
