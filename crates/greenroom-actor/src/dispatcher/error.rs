use greenroom_stage::Rejected;
use thiserror::Error;

/// Why a dispatcher could not be started.
#[derive(Debug, Error)]
pub enum DispatcherError {
    /// The system gave no thread, or no runtime.
    #[error("the dispatcher `{name}` could not start a thread: {source}")]
    Thread {
        /// The dispatcher.
        name: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The stage let its workers not in.
    #[error("the stage refused a worker of the dispatcher `{name}`: {source}")]
    Stage {
        /// The dispatcher.
        name: String,
        /// What the stage said.
        source: Rejected,
    },
    /// It is for runtimes, and there is none here.
    #[error(
        "the dispatcher `{name}` runs actors on the tokio runtime of who spawns them, and there is none here"
    )]
    NoRuntime {
        /// The dispatcher.
        name: String,
    },
    /// Nobody has registered it.
    #[error("there is no dispatcher `{name}`; there are: {known}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that are registered.
        known: String,
    },
    /// A number that is not allowed.
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
