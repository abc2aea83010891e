//! The stages of the process, for the status as a whole.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::stage::shared::Shared;

static STAGES: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

pub(crate) fn add_stage(stage: &Arc<Shared>) {
    let mut stages = STAGES.lock().unwrap_or_else(PoisonError::into_inner);
    stages.retain(|known| known.strong_count() > 0);
    stages.push(Arc::downgrade(stage));
}

/// Returns the stages that still exist, the oldest first.
pub(crate) fn stages() -> Vec<Arc<Shared>> {
    let stages = STAGES.lock().unwrap_or_else(PoisonError::into_inner);
    stages.iter().filter_map(Weak::upgrade).collect()
}
