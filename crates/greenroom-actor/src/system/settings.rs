use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use tokio::runtime::{Handle, Id};

use super::counts::Counts;
use super::guardian::Guardian;
use super::{Registered, SystemShared};
use crate::actor::Actor;
use crate::dispatcher::{Core, Dispatcher, DispatcherError, start};
use crate::limits::Limits;
use crate::mailbox::Mailbox;
use crate::supervision::Supervision;

/// The name of the dispatcher of actors that name none.
pub(super) const DISPATCHER_DEFAULT: &str = "default";

/// The settings that actors of one type on one dispatcher share.
pub(crate) struct Settings {
    pub(crate) system: Arc<SystemShared>,
    pub(crate) dispatcher: Arc<Core>,
    pub(crate) mailbox: Mailbox,
    pub(crate) supervision: Supervision,
    pub(crate) limits: Limits,
    pub(crate) throughput: u32,
    pub(crate) counts: Arc<Counts>,
    type_name: &'static str,
}

impl Settings {
    pub(crate) fn type_name(&self) -> &'static str {
        self.type_name
    }

    pub(crate) fn note_failure(&self) {
        self.counts.failed();
        metrics::counter!("greenroom_actor_failures_total", "type" => self.type_name).increment(1);
    }

    pub(crate) fn note_restart(&self) {
        self.counts.restarted();
        metrics::counter!("greenroom_actor_restarts_total", "type" => self.type_name).increment(1);
    }
}

type Common = FxHashMap<(TypeId, usize), Arc<Settings>>;

/// The types of actors of a system.
pub(crate) struct Types {
    /// The settings by type and by the dispatcher's address, of actors spawned without settings of
    /// their own. Looked up for each new actor, so by a quick hash: no stranger chooses these
    /// keys. `None` once the system has ended.
    common: RwLock<Option<Common>>,
    counts: Mutex<HashMap<TypeId, (&'static str, Arc<Counts>)>>,
}

impl Default for Types {
    fn default() -> Self {
        Self {
            common: RwLock::new(Some(FxHashMap::default())),
            counts: Mutex::default(),
        }
    }
}

/// The settings that the spawner gave instead of the type's.
#[derive(Clone, Default)]
pub(super) struct Overrides {
    pub(super) mailbox: Option<Mailbox>,
    pub(super) supervision: Option<Supervision>,
    pub(super) limits: Option<Limits>,
}

impl Types {
    pub(super) fn settings<A: Actor>(
        &self,
        system: &Arc<SystemShared>,
        dispatcher: Arc<Core>,
        overrides: Overrides,
    ) -> Arc<Settings> {
        let is_common = overrides.mailbox.is_none()
            && overrides.supervision.is_none()
            && overrides.limits.is_none()
            && !dispatcher.is_of_one_actor();
        if !is_common {
            return Arc::new(self.make::<A>(system, dispatcher, overrides));
        }
        // The entry keeps its dispatcher, so no other has this address meanwhile.
        let key = (TypeId::of::<A>(), Arc::as_ptr(&dispatcher).addr());
        let known = self.common.read();
        if let Some(settings) = known.as_ref().and_then(|known| known.get(&key)) {
            return Arc::clone(settings);
        }
        drop(known);
        let made = Arc::new(self.make::<A>(system, dispatcher, overrides));
        let mut known = self.common.write();
        // The first that was made counts. The other is dropped outside of the lock.
        match known.as_mut() {
            Some(known) => Arc::clone(known.entry(key).or_insert_with(|| Arc::clone(&made))),
            None => Arc::clone(&made),
        }
    }

    fn make<A: Actor>(
        &self,
        system: &Arc<SystemShared>,
        dispatcher: Arc<Core>,
        overrides: Overrides,
    ) -> Settings {
        // Users' functions, called outside of the lock.
        let type_name = A::type_name();
        let mailbox = overrides.mailbox.unwrap_or_else(A::mailbox);
        let supervision = overrides.supervision.unwrap_or_else(A::supervision);
        let limits = overrides.limits.unwrap_or_else(A::limits);
        let mut counts = self.counts.lock();
        let of_type = counts.entry(TypeId::of::<A>());
        let (_, counts) = of_type.or_insert_with(|| (type_name, Arc::default()));
        Settings {
            system: Arc::clone(system),
            mailbox,
            supervision,
            limits,
            throughput: dispatcher.throughput,
            dispatcher,
            counts: Arc::clone(counts),
            type_name,
        }
    }

    /// Returns the types that were ever spawned, by name.
    pub(super) fn counts(&self) -> Vec<(&'static str, Arc<Counts>)> {
        let counts = self.counts.lock();
        let of_users = counts
            .iter()
            .filter(|(of, _)| **of != TypeId::of::<Guardian>());
        let mut counts: Vec<_> = of_users.map(|(_, counts)| counts.clone()).collect();
        counts.sort_by_key(|(name, _)| *name);
        counts
    }

    /// Drops the settings, which hold the system, and keeps none from now on.
    pub(super) fn close(&self) {
        let all = self.common.write().take();
        // Outside of the lock: they hold users' functions.
        drop(all);
    }
}

/// The dispatchers that were started of one template: one for each runtime, or for each actor.
#[derive(Default)]
pub(crate) struct Instances {
    by_runtime: Mutex<HashMap<Id, Arc<Core>>>,
    all: Mutex<Vec<std::sync::Weak<Core>>>,
}

/// Ends the threads of a system with it, and those of one that could not be built.
impl Drop for Registered {
    fn drop(&mut self) {
        for core in self.cores() {
            core.close();
        }
    }
}

impl Registered {
    pub(super) fn new(name: &str, dispatcher: &Dispatcher) -> Result<Self, DispatcherError> {
        if dispatcher.is_template() {
            Ok(Self::Template(dispatcher.clone(), Instances::default()))
        } else {
            start(name, dispatcher).map(Self::Started)
        }
    }

    /// Returns the dispatcher for an actor that is spawned here.
    pub(super) fn core(&self, name: &str) -> Result<Arc<Core>, DispatcherError> {
        match self {
            Self::Started(core) => Ok(Arc::clone(core)),
            Self::Template(dispatcher, instances) if dispatcher.is_by_runtime() => {
                let no_runtime = |_| DispatcherError::NoRuntime {
                    name: name.to_owned(),
                };
                let runtime = Handle::try_current().map_err(no_runtime)?.id();
                let mut by_runtime = instances.by_runtime.lock();
                by_runtime.retain(|_, core| !core.is_gone());
                if let Some(core) = by_runtime.get(&runtime) {
                    return Ok(Arc::clone(core));
                }
                let core = start(name, dispatcher)?;
                by_runtime.insert(runtime, Arc::clone(&core));
                Ok(core)
            }
            Self::Template(dispatcher, instances) => {
                let core = start(name, dispatcher)?;
                let mut all = instances.all.lock();
                all.retain(|core| core.strong_count() > 0);
                all.push(Arc::downgrade(&core));
                Ok(core)
            }
        }
    }

    pub(super) fn cores(&self) -> Vec<Arc<Core>> {
        match self {
            Self::Started(core) => vec![Arc::clone(core)],
            Self::Template(_, instances) => {
                let mut cores: Vec<_> = instances.by_runtime.lock().values().cloned().collect();
                cores.extend(
                    instances
                        .all
                        .lock()
                        .iter()
                        .filter_map(std::sync::Weak::upgrade),
                );
                cores
            }
        }
    }
}
