//! The Perl processes of a gateway: started, watched, replaced, ended.
//!
//! One task (`run`) holds the generation that serves and starts the next one. A generation has a
//! task for each slot, which keeps a worker in it, and each worker has one that tends it (`tend`).
//! One task (`monitor`) looks at all workers in turn and passes on what the pool knows. Dropping
//! the supervisor's task drops all that it holds, and with it kills all processes.

mod backoff;
mod channel;
mod control;
mod files;
mod generation;
mod growth;
mod held;
mod launcher;
mod log;
mod member;
mod memory;
mod meters;
mod monitor;
mod order;
mod process;
mod rejection_log;
pub(crate) mod report;
mod run;
pub(crate) mod shared;
mod slot;
mod tend;
#[cfg(test)]
mod tests;
mod zygote;

use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::files::Files;
use self::generation::{Generation, Origin, TakeOver};
pub(crate) use self::run::Command;
use self::run::{COMMANDS_MAX, Supervisor};
use self::shared::Shared;
use crate::error::StartError;
use crate::perl;
use crate::settings::Settings;

/// Starts an application, and returns when the first of its workers is ready.
pub(crate) async fn start(settings: Arc<Settings>) -> Result<Started, StartError> {
    let directory = perl::private_directory()?;
    let watches = settings.reload_on_change.then(|| Files::watch(&settings));
    let files = watches.transpose()?;
    let shared = Arc::new(Shared::new(settings, directory.path().to_path_buf()));
    let parts = Parts {
        shared,
        origin: Origin::Started,
        directory: Some(directory),
        files,
    };
    parts.start().await
}

/// Forks workers from the process that is at the other end of standard input.
pub(crate) async fn start_attached(
    settings: Arc<Settings>,
    directory: &Path,
) -> Result<Started, StartError> {
    perl::check_length(directory)?;
    let channel = standard_input().map_err(|source| StartError::Attach { source })?;
    let zygote = generation::attach(&settings, channel).await?;
    let parts = Parts {
        shared: Arc::new(Shared::new(settings, directory.to_path_buf())),
        origin: Origin::Attached(zygote),
        directory: None,
        files: None,
    };
    parts.start().await
}

/// An application that was started.
pub(crate) struct Started {
    pub(crate) shared: Arc<Shared>,
    pub(crate) commands: mpsc::Sender<Command>,
}

struct Parts {
    shared: Arc<Shared>,
    origin: Origin,
    directory: Option<TempDir>,
    files: Option<Files>,
}

impl Parts {
    async fn start(self) -> Result<Started, StartError> {
        let shared = self.shared;
        let origin = self.origin.clone();
        let at = TakeOver::FirstWorker;
        let current = Generation::start(Arc::clone(&shared), origin, at).await?;
        shared.note_serving(current.number);
        let (commands, orders) = mpsc::channel(COMMANDS_MAX);
        let mut monitor = JoinSet::new();
        monitor.spawn(monitor::watch_workers(Arc::clone(&shared)));
        let supervisor = Supervisor {
            shared: Arc::clone(&shared),
            commands: orders,
            origin: self.origin,
            current,
            files: self.files,
            directory: self.directory,
            monitor,
        };
        tokio::spawn(supervisor.run());
        Ok(Started { shared, commands })
    }
}

fn standard_input() -> io::Result<UnixStream> {
    let input = rustix::stdio::stdin().try_clone_to_owned()?;
    let channel = StdStream::from(input);
    // Fails if it is no socket of this family.
    channel.local_addr()?;
    channel.set_nonblocking(true)?;
    UnixStream::from_std(channel)
}
