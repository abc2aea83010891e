//! The zygote's process.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::log::Log;
use crate::error::StartError;
use crate::perl;
use crate::settings::Settings;

/// The time that a zygote may take to end once its channel did.
const END_WAIT: Duration = Duration::from_secs(2);

/// A zygote's process. Dropping it kills it, with all workers that it forked.
pub(super) struct Process {
    child: Child,
    log: Option<Log>,
}

impl Process {
    /// Starts Perl; also returns our end of its channel.
    pub(super) fn start(
        settings: &Settings,
        directory: &Path,
    ) -> Result<(Self, UnixStream), StartError> {
        let failed = |source| perl_error(settings, source);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let (reader, writer) = io::pipe().map_err(failed)?;
        let log = Log::start(OwnedFd::from(reader), settings.name()).map_err(failed)?;
        let errors = writer.try_clone().map_err(failed)?;
        let child = Command::new(&settings.perl)
            .args(arguments(settings, directory))
            .stdin(blocking(theirs).map_err(failed)?)
            .stdout(writer)
            .stderr(errors)
            // A group of its own, so that `kill` reaches all that it forks.
            .process_group(0)
            // Their descriptors were for this process.
            .env_remove("LISTEN_FDS")
            .env_remove("LISTEN_FDNAMES")
            .env_remove("LISTEN_PID")
            .env_remove("SERVER_STARTER_PORT")
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let log = Some(log);
        Ok((Self { child, log }, ours))
    }

    /// Returns its status and its last lines; it must have begun to end.
    pub(super) async fn exit_report(&mut self) -> (Option<ExitStatus>, String) {
        let status = self.wait().await;
        if status.is_none() {
            self.kill();
        }
        let said = match self.log.take() {
            Some(log) => log.last_lines().await,
            None => String::new(),
        };
        (status, said)
    }

    /// Waits for its end, its channel being closed, and kills it after [`END_WAIT`].
    pub(super) async fn end(mut self) {
        if self.wait().await.is_none() {
            tracing::warn!("a zygote did not end within {END_WAIT:?}, and is killed");
            self.kill();
            self.wait().await;
        }
    }

    async fn wait(&mut self) -> Option<ExitStatus> {
        let ended = tokio::time::timeout(END_WAIT, self.child.wait()).await;
        ended.ok()?.ok()
    }

    /// Kills its process group. It must not have been waited for: the number could be another's.
    pub(super) fn kill(&self) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It may have ended by itself.
            kill_process_group(pid, Signal::KILL).ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns Perl's arguments.
fn arguments(settings: &Settings, directory: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut include = OsString::from("-I");
    include.push(perl::library(directory));
    arguments.push(include);
    arguments
        .extend(["-MGreenroom::Zygote", "-e", "Greenroom::Zygote->main", "--"].map(OsString::from));
    arguments.extend(["--dir".into(), directory.into()]);
    arguments.extend(["--app".into(), settings.application.clone().into()]);
    if settings.preload {
        arguments.push("--preload".into());
    }
    if let Some(environment) = &settings.environment {
        arguments.extend(["--env".into(), environment.into()]);
    }
    for include in &settings.includes {
        arguments.extend(["-I".into(), include.into()]);
    }
    for module in &settings.modules {
        arguments.extend(["-M".into(), module.into()]);
    }
    if settings.limits.workers > 1 {
        arguments.push("--multiprocess".into());
    }
    arguments
}

/// Returns Perl's end of the channel: it reads and writes in the ordinary way.
fn blocking(channel: UnixStream) -> io::Result<Stdio> {
    let channel: StdStream = channel.into_std()?;
    channel.set_nonblocking(false)?;
    Ok(Stdio::from(OwnedFd::from(channel)))
}

fn perl_error(settings: &Settings, source: io::Error) -> StartError {
    let perl = settings.perl.clone();
    match source.kind() {
        io::ErrorKind::NotFound => StartError::NoPerl { perl },
        _ => StartError::Perl { perl, source },
    }
}
