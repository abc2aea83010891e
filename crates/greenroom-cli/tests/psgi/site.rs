//! An application in a folder of its own, the program that serves it, and the state of both.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::http;
use crate::program::{Running, command};

/// The time-out of a condition; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The interval between two looks at it.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A folder that is the working directory of all processes, by which they are found.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        // A folder of its own, so that nothing but the application changes in it.
        fs::create_dir(folder.path().join("app")).unwrap();
        Self(folder)
    }

    pub(crate) fn with(application: &str) -> Self {
        let folder = Self::new();
        folder.write("app/app.psgi", application);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        // In one step: a reader finds the old or the new.
        let new = self.path("tmp-file");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    /// Waits for an application to make this file.
    pub(crate) fn await_file(&self, name: &str) {
        until(&format!("no file {name}"), || self.path(name).exists());
    }

    /// Returns `greenroom serve`, on a free port, with an operators' address.
    pub(crate) fn serve(&self, application: &Path, flags: &[&str]) -> Command {
        let listen = ["serve", "-l", "127.0.0.1:0", "--status-listen"];
        let mut serve = command(&[&listen[..], &["127.0.0.1:0"], flags].concat());
        serve.arg(application);
        self.confine(&mut serve);
        serve
    }

    pub(crate) fn confine(&self, command: &mut Command) {
        command
            .current_dir(self.0.path())
            .env_remove("XDG_RUNTIME_DIR")
            .env("TMPDIR", self.path("tmp"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    }

    /// Returns the processes of this folder that have not ended.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let place = fs::canonicalize(self.0.path()).unwrap();
        let entries = fs::read_dir("/proc").unwrap();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == place))
            .collect()
    }

    /// Asserts that nothing of the program that has ended is left.
    pub(crate) fn assert_left_alone(&self) {
        let processes = self.processes();
        assert!(processes.is_empty(), "processes are left: {processes:?}");
        let files = fs::read_dir(self.path("tmp")).unwrap();
        let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        assert!(files.is_empty(), "{files:?}");
    }
}

/// The program while it serves.
pub(crate) struct Site {
    pub(crate) folder: Folder,
    pub(crate) server: Running,
    status: String,
}

impl Site {
    /// Serves an application of this source.
    pub(crate) fn serve(application: &str, flags: &[&str]) -> Self {
        Self::serve_app(Folder::with(application), flags)
    }

    /// Serves the application of this folder.
    pub(crate) fn serve_app(folder: Folder, flags: &[&str]) -> Self {
        let file = folder.path("app/app.psgi");
        Self::serve_file(folder, &file, flags)
    }

    /// Serves a file of `examples/psgi`.
    pub(crate) fn example(name: &str, flags: &[&str]) -> Self {
        Self::serve_file(Folder::new(), &example(name), flags)
    }

    fn serve_file(folder: Folder, file: &Path, flags: &[&str]) -> Self {
        let server = Running::start(&mut folder.serve(file, flags));
        let line = server.wait_for_log("status at");
        let (_, status) = line.split_once("http://").expect("it is named");
        let status = status.trim().to_owned();
        let site = Self {
            folder,
            server,
            status,
        };
        // It serves with the first of its workers.
        site.await_status(|status| ready(status) == status["workers_wanted"].as_u64());
        site
    }

    pub(crate) fn address(&self) -> &str {
        &self.server.address
    }

    pub(crate) fn get(&self, path: &str) -> http::Response {
        http::get(self.address(), path)
    }

    /// Returns the status of the first application, as operators see it.
    pub(crate) fn status(&self) -> Value {
        self.status_of(0)
    }

    /// Returns the status of an application; they count from 0, in the order of the command line.
    fn status_of(&self, application: usize) -> Value {
        let response = http::get(&self.status, "/greenroom/status");
        let status: Value = serde_json::from_slice(&response.body).expect("the status is JSON");
        status["psgi"][application].clone()
    }

    /// Returns the metrics for Prometheus.
    pub(crate) fn metrics(&self) -> String {
        http::get(&self.status, "/greenroom/metrics").text()
    }

    /// Waits until the operators' status is right.
    pub(crate) fn await_status(&self, is_right: impl Fn(&Value) -> bool) -> Value {
        self.await_status_of(0, is_right)
    }

    pub(crate) fn await_status_of(
        &self,
        application: usize,
        is_right: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut status = Value::Null;
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            status = self.status_of(application);
            if is_right(&status) {
                return status;
            }
            thread::park_timeout(LOOK_INTERVAL);
        }
        panic!("the status does not become right: {status:#}");
    }

    /// Sends SIGTERM, and asserts the exit status, and that nothing is left.
    pub(crate) fn end(&mut self, exit_status: i32) {
        self.server.signal(Signal::TERM);
        assert_eq!(self.server.wait().code(), Some(exit_status));
        self.folder.assert_left_alone();
    }
}

pub(crate) fn until(failure: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{failure}");
        thread::park_timeout(LOOK_INTERVAL);
    }
}

pub(crate) fn example(name: &str) -> PathBuf {
    repository("examples/psgi").join(name)
}

/// Returns a path of the repository.
pub(crate) fn repository(path: impl AsRef<OsStr>) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository is there");
    root.join(path.as_ref())
}

/// Returns the sum of a number that each worker has.
pub(crate) fn sum(status: &Value, name: &str) -> u64 {
    let workers = status["workers"].as_array().expect("they are listed");
    workers
        .iter()
        .map(|worker| worker[name].as_u64().expect("it is a number"))
        .sum()
}

/// Returns the number of workers that are ready.
fn ready(status: &Value) -> Option<u64> {
    let workers = status["workers"].as_array()?.iter();
    let ready = workers.filter(|worker| worker["state"] == "ready");
    u64::try_from(ready.count()).ok()
}
