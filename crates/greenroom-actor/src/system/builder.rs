use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use thiserror::Error;

use super::guardian::Guardian;
use super::presence::Presence;
use super::settings::{DISPATCHER_DEFAULT, Overrides, Types};
use super::{ActorSystem, Registered, SystemShared, registry, spawn};
use crate::dead_letter::DeadLetters;
use crate::dispatcher::{Core, Dispatcher, DispatcherError};
use crate::events::EventStream;
use crate::limits::Limits;
use crate::supervision::Supervision;

/// Settings of an actor system.
#[derive(Clone, Debug)]
pub struct ActorSystemBuilder {
    name: String,
    dispatchers: BTreeMap<String, Dispatcher>,
    supervision: Supervision,
    limits: Limits,
}

/// The reason for which a system could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// One of its dispatchers could not be started.
    #[error(transparent)]
    Dispatcher(#[from] DispatcherError),
    /// The default dispatcher is of a kind that is not there wherever an actor is spawned.
    #[error(
        "the dispatcher `{DISPATCHER_DEFAULT}` is of a kind that is started for each runtime or \
         each actor; register it under another name"
    )]
    DefaultIsTemplate,
}

impl Default for ActorSystemBuilder {
    fn default() -> Self {
        Self {
            name: "actors".to_owned(),
            dispatchers: BTreeMap::from([(DISPATCHER_DEFAULT.to_owned(), Dispatcher::tokio())]),
            supervision: Supervision::default(),
            limits: Limits::default().children(Limits::MAX),
        }
    }
}

impl ActorSystemBuilder {
    /// Sets the name of the system in logs and the status. Default: `actors`.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// Registers a dispatcher under a name, by which
    /// [`Spawn::dispatcher`](crate::Spawn::dispatcher) finds it. The name `default` replaces the
    /// one for actors that name none.
    #[must_use]
    pub fn dispatcher(mut self, name: impl Into<String>, dispatcher: Dispatcher) -> Self {
        self.dispatchers.insert(name.into(), dispatcher);
        self
    }

    /// Registers several dispatchers, such as those of a configuration file.
    #[must_use]
    pub fn dispatchers(
        mut self,
        dispatchers: impl IntoIterator<Item = (String, Dispatcher)>,
    ) -> Self {
        self.dispatchers.extend(dispatchers);
        self
    }

    /// Sets the supervision of actors at the top of the tree. There is no supervisor above to
    /// escalate to: such a failure ends the actor.
    #[must_use]
    pub fn supervision(self, supervision: Supervision) -> Self {
        Self {
            supervision,
            ..self
        }
    }

    /// Sets the number of actors at the top of the tree ([`Limits::children`]). Default:
    /// [`Limits::MAX`].
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Starts the system and its dispatchers.
    ///
    /// # Errors
    ///
    /// If a dispatcher cannot be started.
    pub fn build(self) -> Result<ActorSystem, BuildError> {
        let mut dispatchers = BTreeMap::new();
        for (name, dispatcher) in &self.dispatchers {
            dispatchers.insert(name.clone(), Registered::new(name, dispatcher)?);
        }
        let Some(Registered::Started(default)) = dispatchers.get(DISPATCHER_DEFAULT) else {
            return Err(BuildError::DefaultIsTemplate);
        };
        let default = Arc::clone(default);
        let system = Arc::new(SystemShared {
            name: self.name,
            dead_letters: DeadLetters::default(),
            events: EventStream::default(),
            users: AtomicUsize::new(0),
            #[cfg(feature = "web")]
            connections: tokio::sync::watch::Sender::new(0),
            dispatchers,
            types: Types::default(),
            root: OnceLock::new(),
        });
        let overrides = Overrides {
            supervision: Some(self.supervision),
            limits: Some(self.limits),
            ..Overrides::default()
        };
        let settings = system
            .types
            .settings::<Guardian>(&system, default, overrides);
        let root = spawn::make(None, settings, None, Box::new(|| Guardian));
        let _ = system.root.set(Arc::downgrade(&root) as _);
        spawn::begin(&root);
        registry::add(&system);
        Ok(ActorSystem(Presence::new(system), root))
    }
}

impl SystemShared {
    /// Returns the dispatcher of this name, for an actor that is spawned here.
    pub(super) fn dispatcher(&self, name: &str) -> Result<Arc<Core>, DispatcherError> {
        self.registered(name)?.core(name)
    }

    /// Returns the dispatcher of this name, started or not.
    pub(crate) fn registered(&self, name: &str) -> Result<&Registered, DispatcherError> {
        self.dispatchers.get(name).ok_or_else(|| {
            let known: Vec<_> = self.dispatchers.keys().map(String::as_str).collect();
            DispatcherError::Unknown {
                name: name.to_owned(),
                known: known.join(", "),
            }
        })
    }
}
