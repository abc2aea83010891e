use std::sync::Arc;

use parking_lot::Mutex;

use super::presence::Presence;
use super::settings::Overrides;
use super::{Spawn, SpawnError};
use crate::actor::Actor;
use crate::cell::AnyCell;
use crate::reference::ActorRef;

/// A template of actors of one kind under one parent, to be spawned again and again.
pub(crate) struct Template<A: Actor> {
    system: Arc<super::SystemShared>,
    parent: Option<Arc<dyn AnyCell>>,
    factory: Arc<Mutex<Box<dyn Fn() -> A + Send>>>,
    name: Option<Box<str>>,
    dispatcher: Option<String>,
    overrides: Overrides,
    spawned: u64,
    user: Option<Presence>,
}

impl<A: Actor> Template<A> {
    pub(crate) fn new(spawn: Spawn<A>) -> Self {
        Self {
            system: spawn.system,
            parent: spawn.parent,
            factory: Arc::new(Mutex::new(spawn.factory)),
            name: spawn.name,
            dispatcher: spawn.dispatcher,
            overrides: spawn.overrides,
            spawned: 0,
            user: spawn.user,
        }
    }

    /// Spawns an actor. If the template has a name, a number from 1 follows it.
    pub(crate) fn spawn(&mut self) -> Result<ActorRef<A>, SpawnError> {
        let factory = Arc::clone(&self.factory);
        let number = self.spawned + 1;
        let spawn = Spawn {
            system: Arc::clone(&self.system),
            parent: self.parent.clone(),
            factory: Box::new(move || factory.lock()()),
            name: self
                .name
                .as_ref()
                .map(|name| format!("{name}-{number}").into()),
            dispatcher: self.dispatcher.clone(),
            overrides: self.overrides.clone(),
            watcher: None,
            user: self.user.clone(),
        };
        let actor = spawn.spawn()?;
        self.spawned = number;
        Ok(actor)
    }
}
