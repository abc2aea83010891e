use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::Value;
use tempfile::TempDir;

use crate::ports::free_port;

use super::NatsSettings;
use super::log::{DEADLINE, Log};
use super::settings::STORE;

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A NATS server on a port of its own of the loopback. Ends when dropped.
pub struct NatsServer {
    settings: NatsSettings,
    port: u16,
    monitor: u16,
    directory: TempDir,
    process: Option<Child>,
    log: Option<Arc<Log>>,
}

impl NatsServer {
    /// Returns the settings of a server without streams, users and TLS.
    #[must_use]
    pub fn settings() -> NatsSettings {
        NatsSettings::default()
    }

    /// Starts a server without streams, users and TLS.
    #[must_use]
    pub fn start() -> Self {
        Self::settings().start()
    }

    pub(super) fn new(settings: NatsSettings) -> Self {
        Self {
            settings,
            port: free_port(),
            monitor: free_port(),
            directory: TempDir::new().expect("a directory"),
            process: None,
            log: None,
        }
    }

    /// Returns its port, also while it does not run.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns `nats://127.0.0.1:PORT`, or `tls://localhost:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        match self.settings.host {
            Some(host) => format!("tls://{host}:{}", self.port),
            None => format!("nats://127.0.0.1:{}", self.port),
        }
    }

    /// Runs it on its port, to which it may have been bound before, and waits until it is ready.
    pub fn run(&mut self) {
        let ran = self.try_run();
        assert!(
            ran,
            "nats-server does not start on port {}\n{}",
            self.port,
            self.log()
        );
    }

    /// Kills it as the system kills a process for want of memory: without a word to its clients.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it runs");
            process.wait().expect("it has ended");
        }
    }

    /// Ends it in order (SIGTERM), and waits until it has ended.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            kill_process(Pid::from_child(&process), Signal::TERM).expect("it runs");
            process.wait().expect("it has ended");
        }
    }

    /// Copies what it has stored. To be called while it does not run.
    #[must_use]
    pub fn back_up(&self) -> TempDir {
        let backup = TempDir::new().expect("a directory");
        copy(&self.store(), &backup.path().join(STORE));
        backup
    }

    /// Puts back what it had stored, in place of what it has. To be called while it does not run.
    pub fn restore(&self, backup: &TempDir) {
        fs::remove_dir_all(self.store()).expect("it is there");
        copy(&backup.path().join(STORE), &self.store());
    }

    fn store(&self) -> PathBuf {
        self.directory.path().join(STORE)
    }

    /// Stops it, with its connections open, and waits until all its threads stand still.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        let process = self.process.as_ref().map(Pid::from_child);
        let waited = waitpid(process, WaitOptions::UNTRACED).expect("it is a child");
        assert!(waited.is_some_and(|(_, status)| status.stopped()));
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Returns what its monitoring port says at a path such as `/connz?subs=1`; `None` while it
    /// does not run.
    #[must_use]
    pub fn monitor(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.monitor)).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        let (_, body) = response.split_once("\r\n\r\n")?;
        Some(serde_json::from_str(body).expect("JSON"))
    }

    /// Waits until a text is in the log of its present or last run.
    pub fn await_log(&self, text: &str) {
        let log = self.log.as_ref().expect("it ran");
        assert!(log.await_text(text), "no {text:?} in\n{}", log.text());
    }

    /// Returns the log of its present or last run.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.as_ref().map(|log| log.text()).unwrap_or_default()
    }

    /// Waits until it is connected to so many other servers of its cluster and, with streams, knows
    /// the leader.
    pub(super) fn await_whole(&self, others: usize) {
        let deadline = Instant::now() + DEADLINE;
        while !self.is_whole(others) {
            assert!(Instant::now() < deadline, "it is alone\n{}", self.log());
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn is_whole(&self, others: usize) -> bool {
        let routes = self.monitor("/routez");
        let is_connected = routes.is_some_and(|routes| known(&routes).len() == others);
        let knows_leader = || {
            let streams = self.monitor("/jsz").expect("it runs");
            streams["meta_cluster"]["leader"].is_string()
        };
        is_connected && (!self.settings.has_jet_stream || knows_leader())
    }

    pub(super) fn move_ports(&mut self) {
        (self.port, self.monitor) = (free_port(), free_port());
    }

    /// Returns `false` if it ended before it was ready, as when its port is taken.
    pub(super) fn try_run(&mut self) -> bool {
        let directory = self.directory.path();
        self.settings.write(directory, self.port, self.monitor);
        let mut process = spawn(directory);
        let output = process.stderr.take().expect("it is piped");
        let log = self.log.insert(Log::read(output));
        let is_ready = log.await_text("Server is ready");
        if is_ready {
            self.process = Some(process);
        } else {
            let status = process.wait().expect("it has ended");
            assert_ne!(
                status.code(),
                Some(127),
                "nats-server is not installed: run `cargo xtask tools`"
            );
        }
        is_ready
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it runs");
        kill_process(Pid::from_child(process), signal).expect("it runs");
    }
}

/// Returns the names of the servers to which there are routes: several to each since NATS 2.10.
fn known(routes: &Value) -> BTreeSet<&str> {
    let routes = routes["routes"].as_array().into_iter().flatten();
    let names = routes.filter_map(|route| route["remote_name"].as_str());
    names.collect()
}

/// Returns the path of `nats-server`: what the variable `NATS_SERVER` says, or that which
/// `cargo xtask tools` has installed.
#[must_use]
pub fn nats_server() -> PathBuf {
    let installed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/tools/nats/nats-server"
    );
    std::env::var_os("NATS_SERVER").map_or_else(|| installed.into(), PathBuf::from)
}

/// Copies a directory to a path that is free.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(status.expect("cp is there").success());
}

/// Starts the server in a directory with its configuration. It ends with this thread, however that
/// ends.
fn spawn(directory: &Path) -> Child {
    let process = Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .arg(nats_server())
        .args(["-c", "nats.conf"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    process.expect("setpriv of util-linux")
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl fmt::Debug for NatsServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NatsServer")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
