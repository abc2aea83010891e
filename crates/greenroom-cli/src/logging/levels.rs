use std::sync::Arc;

use parking_lot::Mutex;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::reload::{Error, Handle, Layer};

/// The level of the log, which can change while lines are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels(Arc<Mutex<Vec<Handle<Targets, Registry>>>>);

impl Levels {
    /// Returns a filter that is changed with all others.
    pub(super) fn filter(&self, level: &Targets) -> Layer<Targets, Registry> {
        let (filter, handle) = Layer::new(level.clone());
        self.0.lock().push(handle);
        filter
    }

    pub(crate) fn set(&self, level: &Targets) -> Result<(), Error> {
        let handles = self.0.lock();
        handles
            .iter()
            .try_for_each(|handle| match handle.reload(level.clone()) {
                // A filter of a layer that this way of logging has not.
                Err(error) if error.is_dropped() => Ok(()),
                set => set,
            })
    }
}
