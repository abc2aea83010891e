use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::SystemShared;
use crate::cell::Signal;

/// A use of a system from outside of its actors, counted. When the last is dropped and no actor is
/// left, nobody can reach the system any more, and it ends.
pub(crate) struct Presence(Arc<SystemShared>);

impl Presence {
    pub(super) fn new(system: Arc<SystemShared>) -> Self {
        system.users.fetch_add(1, Ordering::Relaxed);
        Self(system)
    }
}

impl Clone for Presence {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl Deref for Presence {
    type Target = Arc<SystemShared>;

    fn deref(&self) -> &Arc<SystemShared> {
        &self.0
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        if let Some(root) = self.0.root() {
            root.signal(Signal::Unused);
        }
    }
}
