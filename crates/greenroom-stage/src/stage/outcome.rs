use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::runtime::Handle;

use super::error::Panicked;
use super::shared::Shared;

/// The result of work that has ended on a stage's thread.
///
/// Nobody takes it whose caller has left in the work's last poll: then it is dropped on that
/// thread, within the runtime that submitted the work, as the work itself would be, and a
/// destructor that panics costs nothing else.
pub(crate) struct Outcome<T> {
    result: Option<Result<T, Panicked>>,
    runtime: Option<Handle>,
    stage: Arc<Shared>,
}

impl<T> Outcome<T> {
    pub(super) fn new(
        result: Result<T, Panicked>,
        runtime: Option<Handle>,
        stage: Arc<Shared>,
    ) -> Self {
        Self {
            result: Some(result),
            runtime,
            stage,
        }
    }

    /// Returns the result to the caller, who has not left.
    pub(super) fn take(mut self) -> Result<T, Panicked> {
        self.result.take().expect("it is taken once")
    }
}

impl<T> Drop for Outcome<T> {
    fn drop(&mut self) {
        let Some(result) = self.result.take() else {
            return;
        };
        let _entered = self.runtime.as_ref().map(Handle::enter);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(result)));
        if let Err(payload) = dropped {
            self.stage.log_panic(&Panicked::of(payload));
        }
    }
}
