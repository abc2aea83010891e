use std::time::{Duration, SystemTime};

use greenroom::actor::{Actor, AsyncHandler, BoxError, Context};

use super::Files;

/// Interval of looking.
const EVERY: Duration = Duration::from_mins(1);

/// An actor that deletes the files of unfinished uploads on this machine, where no janitor does.
pub(crate) struct Sweeper {
    files: Files,
    after: Duration,
}

#[derive(Clone)]
pub(crate) struct Sweep;

impl Sweeper {
    /// Creates a sweeper of files that were last written this long ago.
    pub(crate) fn new(files: &Files, after: Duration) -> Self {
        let files = files.clone();
        Self { files, after }
    }
}

impl Actor for Sweeper {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        context.every(EVERY, Sweep);
        context.once(Duration::ZERO, Sweep);
        Ok(())
    }
}

impl AsyncHandler<Sweep> for Sweeper {
    type Reply = ();

    async fn handle(&mut self, _: Sweep, _: &mut Context<Self>) {
        if let Some(until) = SystemTime::now().checked_sub(self.after) {
            self.files.sweep_unfinished(until).await;
        }
    }
}
