//! An application in a folder of its own, and the state of processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use greenroom_psgi::{Builder, Gateway, GatewayStatus, WorkerState};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// The time-out of a condition: far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The interval between two looks at a condition.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// An application that responds.
pub(crate) const GOOD: &str = "sub { [200, [], ['good']] }";

/// A folder with `app.psgi`.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// Creates a folder with this application, in which `$folder` is the folder's path.
    pub(crate) fn with(application: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("the temporary directory can be written"));
        folder.write_application(application);
        folder
    }

    pub(crate) fn write_application(&self, text: &str) {
        let folder = self.0.path().display();
        self.write("app.psgi", &format!("my $folder = '{folder}'; {text}"));
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Returns a builder with one worker.
    pub(crate) fn builder(&self) -> Builder {
        Gateway::builder(self.path("app.psgi")).workers(1)
    }

    pub(crate) async fn start(&self) -> Gateway {
        let started = self.builder().start().await;
        started.expect("the application can be loaded")
    }

    /// Returns the error with which its start fails.
    pub(crate) async fn failure(&self) -> String {
        failure(self.builder()).await
    }
}

pub(crate) async fn failure(builder: Builder) -> String {
    let started = builder.start().await;
    started.expect_err("it cannot be started").to_string()
}

/// Waits until the gateway's status is as it should be.
pub(crate) async fn until(
    gateway: &Gateway,
    mut is_so: impl FnMut(&GatewayStatus) -> bool,
) -> GatewayStatus {
    let wait = async {
        loop {
            let status = gateway.status();
            if is_so(&status) {
                return status;
            }
            sleep(LOOK_INTERVAL).await;
        }
    };
    let status = timeout(PATIENCE, wait).await;
    status.unwrap_or_else(|_| panic!("it stays at {:#?}", gateway.status()))
}

pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(LOOK_INTERVAL).await;
        }
    };
    timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("not in time: {what}"));
}

/// Returns the processes of the workers that serve.
pub(crate) fn serving(status: &GatewayStatus) -> Vec<i32> {
    let workers = status.workers.iter();
    let serving =
        workers.filter(|worker| matches!(worker.state, WorkerState::Ready | WorkerState::Retiring));
    serving.map(|worker| worker.pid).collect()
}

/// Returns `true` if exactly this many workers exist, and all are ready.
pub(crate) fn are_ready(status: &GatewayStatus, workers: usize) -> bool {
    let mut all = status.workers.iter();
    status.workers.len() == workers && all.all(|worker| worker.state == WorkerState::Ready)
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("it is a process' number");
    kill_process(pid, signal).expect("the process exists");
}

/// Returns `true` if a process exists, and is no zombie.
pub(crate) fn is_running(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat[0].as_str(), "Z" | "X"))
}

pub(crate) fn parent(pid: i32) -> i32 {
    let stat = stat(pid).expect("the process exists");
    stat[1].parse().expect("it is a number")
}

/// Returns the words of `/proc/PID/stat` after the name, which is in parentheses.
fn stat(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}
