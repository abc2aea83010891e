use greenroom_stage::Rejected;
use thiserror::Error;

/// The reason for which a dispatcher could not be started.
#[derive(Debug, Error)]
pub enum DispatcherError {
    /// The system gave no thread, or no runtime.
    #[error("the dispatcher `{name}` could not start a thread: {source}")]
    Thread {
        /// The dispatcher.
        name: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The stage rejected its workers.
    #[error("the stage refused a worker of the dispatcher `{name}`: {source}")]
    Stage {
        /// The dispatcher.
        name: String,
        /// The rejection of the stage.
        source: Rejected,
    },
    /// It runs actors on the current tokio runtime, and there is none.
    #[error(
        "the dispatcher `{name}` runs actors on the tokio runtime of who spawns them, and there \
         is none here"
    )]
    NoRuntime {
        /// The dispatcher.
        name: String,
    },
    /// No dispatcher of this name is registered.
    #[error("there is no dispatcher `{name}`; there are: {known}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that are registered.
        known: String,
    },
    /// The number of workers is out of range.
    #[error(
        "the dispatcher `{name}` has {workers} workers; allowed are 1 to {}",
        crate::Dispatcher::WORKERS_MAX
    )]
    Workers {
        /// The dispatcher.
        name: String,
        /// The number.
        workers: usize,
    },
}
