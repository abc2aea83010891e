use std::fmt;
use std::sync::Arc;

use super::settings::Overrides;
use super::{SystemShared, next_id};
use crate::actor::Actor;
use crate::cell::{AnyCell, Body, Shared, Signal, Watcher};
use crate::context::Context;
use crate::dispatcher::DispatcherError;
use crate::mailbox::Mailbox;
use crate::raw::{ActorCell, Seat, Turn};
use crate::reference::{ActorId, ActorRef};
use crate::supervision::Supervision;

/// An actor that is about to be spawned, with settings.
#[must_use = "nothing is spawned before `spawn`"]
pub struct Spawn<A: Actor> {
    pub(super) system: Arc<SystemShared>,
    /// None if the system has ended.
    pub(super) parent: Option<Arc<dyn AnyCell>>,
    pub(super) factory: Box<dyn Fn() -> A + Send>,
    pub(super) name: Option<Box<str>>,
    pub(super) dispatcher: Option<String>,
    pub(super) overrides: Overrides,
    pub(super) watcher: Option<Watcher>,
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
        }
    }

    /// Has somebody who is no actor told of its end.
    #[cfg(feature = "web")]
    pub(crate) fn watched_by(
        mut self,
        watcher: impl FnOnce(crate::Terminated) + Send + 'static,
    ) -> Self {
        self.watcher = Some(Box::new(watcher));
        self
    }

    /// What the actor is called in its path, instead of its type and number. Need not be unique.
    pub fn name(self, name: impl Into<Box<str>>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }

    /// The mailbox, instead of that of the type ([`Actor::mailbox`]).
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.overrides.mailbox = Some(mailbox);
        self
    }

    /// How the actor supervises its children, instead of how the type does
    /// ([`Actor::supervision`]).
    pub fn supervision(mut self, supervision: Supervision) -> Self {
        self.overrides.supervision = Some(supervision);
        self
    }

    /// The name of the dispatcher that runs the actor. Without, the system's default dispatcher
    /// does.
    pub fn dispatcher(self, name: impl Into<String>) -> Self {
        Self {
            dispatcher: Some(name.into()),
            ..self
        }
    }

    /// Spawns it.
    ///
    /// # Errors
    ///
    /// If there is no dispatcher of that name, or it could not be started here.
    pub fn spawn(self) -> Result<ActorRef<A>, DispatcherError> {
        let name = self
            .dispatcher
            .as_deref()
            .unwrap_or(super::builder::DEFAULT);
        let dispatcher = self.system.dispatcher(name)?;
        let settings = self
            .system
            .types
            .settings::<A>(&self.system, dispatcher, self.overrides);
        let cell = make(self.parent.clone(), settings, self.name, self.factory);
        if let Some(watcher) = self.watcher {
            cell.watch(OUTSIDE, watcher);
        }
        Ok(hand_over(self.parent.as_ref(), cell))
    }

    /// Spawns it on the default dispatcher, which is there.
    pub(crate) fn spawn_or_end(self) -> ActorRef<A> {
        self.spawn()
            .unwrap_or_else(|error| panic!("the default dispatcher: {error}"))
    }
}

impl<A: Actor> fmt::Debug for Spawn<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The number of a watcher that is no actor.
pub(super) const OUTSIDE: ActorId = ActorId(0);

fn hand_over<A: Actor>(parent: Option<&Arc<dyn AnyCell>>, cell: Arc<ActorCell<A>>) -> ActorRef<A> {
    let turn = wake_up(&cell);
    if !parent.is_some_and(|parent| parent.adopt(Arc::clone(&cell) as _)) {
        cell.signal_any(Signal::Kill);
    }
    cell.schedule(turn);
    ActorRef(cell)
}

pub(super) fn make<A: Actor>(
    parent: Option<Arc<dyn AnyCell>>,
    settings: Arc<super::Settings>,
    name: Option<Box<str>>,
    factory: Box<dyn Fn() -> A + Send>,
) -> Arc<ActorCell<A>> {
    settings.counts.spawned();
    let shared = Shared::new(next_id(), settings, parent, name);
    let body = Body::new(Seat::new(Context::new()), factory);
    Arc::new(ActorCell::new(shared, body))
}

/// Hands an actor that has no parent to its dispatcher.
pub(super) fn begin<A: Actor>(cell: &Arc<ActorCell<A>>) {
    let turn = wake_up(cell);
    cell.schedule(turn);
}

/// Lets a new actor know itself. Its first turn is the caller's.
fn wake_up<A: Actor>(cell: &Arc<ActorCell<A>>) -> Turn {
    let turn = cell.signal().expect("nobody else knows the actor yet");
    let body = cell.body(&turn);
    body.me.set(Some(Arc::clone(cell)));
    body.seat
        .with_context(|context| context.introduce(ActorRef(Arc::clone(cell))));
    turn
}
