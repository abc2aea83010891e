//! The systems of the process, for whoever looks at it as a whole.

use std::sync::{Arc, Mutex, Weak};

use super::SystemShared;
use crate::cell::AnyCell;
use crate::cell::family::lock;
use crate::reference::ActorId;

static SYSTEMS: Mutex<Vec<Weak<SystemShared>>> = Mutex::new(Vec::new());

pub(super) fn add(system: &Arc<SystemShared>) {
    let mut systems = lock(&SYSTEMS);
    systems.retain(|known| known.strong_count() > 0);
    systems.push(Arc::downgrade(system));
}

/// The systems that still exist, the oldest first.
pub(crate) fn systems() -> Vec<Arc<SystemShared>> {
    lock(&SYSTEMS).iter().filter_map(Weak::upgrade).collect()
}

pub(crate) fn find_anywhere(id: ActorId) -> Option<Arc<dyn AnyCell>> {
    systems().iter().find_map(|system| system.find(id))
}
