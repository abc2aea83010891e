//! The systems of the process, for the status, the metrics and the watchdog.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::SystemShared;
use crate::cell::AnyCell;
use crate::dispatcher::Core;
use crate::id::ActorId;

static SYSTEMS: Mutex<Vec<Weak<SystemShared>>> = Mutex::new(Vec::new());

pub(super) fn add(system: &Arc<SystemShared>) {
    let mut systems = SYSTEMS.lock();
    systems.retain(|known| known.strong_count() > 0);
    systems.push(Arc::downgrade(system));
}

/// Returns the systems that have not ended, the oldest first.
pub(crate) fn systems() -> Vec<Arc<SystemShared>> {
    let systems: Vec<_> = SYSTEMS.lock().iter().filter_map(Weak::upgrade).collect();
    systems
        .into_iter()
        .filter(|system| system.root().is_some())
        .collect()
}

pub(crate) fn find_anywhere(id: ActorId) -> Option<Arc<dyn AnyCell>> {
    systems().iter().find_map(|system| system.find(id))
}

/// Kills the actors of a dispatcher whose workers are gone: no worker would run them.
pub(crate) fn end_actors_of(dispatcher: &Core) {
    for system in systems() {
        system.end_actors_of(dispatcher);
    }
}
