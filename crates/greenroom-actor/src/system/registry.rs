//! The systems of the process, for the status, the metrics and the watchdog.

use std::sync::Arc;

use greenroom_stage::scope::{Listing, StatusScope};

use super::SystemShared;
use crate::cell::AnyCell;
use crate::dispatcher::Core;
use crate::id::ActorId;

static SYSTEMS: Listing<SystemShared> = Listing::new();

pub(super) fn add(system: &Arc<SystemShared>) {
    SYSTEMS.add(system);
}

pub(super) fn claim(system: &Arc<SystemShared>, scope: &StatusScope) {
    SYSTEMS.claim(system, scope);
}

/// Returns the systems that have not ended, the oldest first.
pub(crate) fn systems() -> Vec<Arc<SystemShared>> {
    living(SYSTEMS.all())
}

/// Returns those of a scope, and those that no scope claims.
pub(super) fn systems_within(scope: &StatusScope) -> Vec<Arc<SystemShared>> {
    living(SYSTEMS.within(scope))
}

fn living(mut systems: Vec<Arc<SystemShared>>) -> Vec<Arc<SystemShared>> {
    systems.retain(|system| system.root().is_some());
    systems
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
