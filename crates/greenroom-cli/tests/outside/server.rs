//! The program `greenroom`, started for one test and killed with it.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use super::{http, wait};

const START_DEADLINE: Duration = Duration::from_mins(1);

/// The time-out of a clean-up: the slowest way to notice that a peer has gone is a time-out of 10 s
/// and a turn of the wheel; the rest is for a busy machine.
const CLEAN_UP_DEADLINE: Duration = Duration::from_mins(1);

/// The number of equal counts in a row that show a rest.
const OBSERVATIONS_AT_REST: usize = 10;

pub(crate) struct Server {
    child: Child,
    addresses: Vec<String>,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Starts one listener on a free port of 127.0.0.1.
    pub(crate) fn start() -> Self {
        Self::listening_on(&["127.0.0.1:0"])
    }

    pub(crate) fn listening_on(addresses: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.arg("serve");
        Self::spawn(command, addresses)
    }

    /// As [`Server::start`], with such flags besides.
    pub(crate) fn with_flags(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.arg("serve").args(flags);
        Self::spawn(command, &["127.0.0.1:0"])
    }

    /// As [`Server::with_flags`], whose flags name `count` addresses to listen on, too. They follow
    /// the one of [`Server::start`].
    pub(crate) fn with_flags_listening_on(flags: &[&str], count: usize) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.arg("serve").args(flags);
        Self::spawn_listening(command, &["127.0.0.1:0"], 1 + count)
    }

    /// Serves a file of sites, which names `count` addresses to listen on.
    pub(crate) fn of_sites(file: &str, count: usize) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(["serve", file]);
        Self::spawn_listening(command, &[], count)
    }

    /// Starts it as [`Server::start`], with the process's limit on open descriptors.
    pub(crate) fn with_descriptors_max(descriptors_max: u32) -> Self {
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--nofile={descriptors_max}:{descriptors_max}"))
            .args([env!("CARGO_BIN_EXE_greenroom"), "serve"]);
        Self::spawn(command, &["127.0.0.1:0"])
    }

    fn spawn(command: Command, addresses: &[&str]) -> Self {
        Self::spawn_listening(command, addresses, addresses.len())
    }

    fn spawn_listening(mut command: Command, addresses: &[&str], count: usize) -> Self {
        // None of these tests is of overload, and a machine that runs tests may be slow.
        command.args(["--log-format", "json", "--loop-lag-max", "1m"]);
        for address in addresses {
            command.args(["--listen", address]);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server can be started");
        let stderr = child.stderr.take().expect("standard error is a pipe");
        let log = Arc::default();
        let (sender, receiver) = mpsc::channel();
        thread::spawn({
            let log = Arc::clone(&log);
            move || follow(stderr, &log, &sender)
        });
        let mut server = Self {
            child,
            addresses: Vec::new(),
            log,
        };
        server.await_addresses(count, &receiver);
        server
    }

    fn await_addresses(&mut self, count: usize, receiver: &Receiver<String>) {
        while self.addresses.len() < count {
            let address = receiver.recv_timeout(START_DEADLINE).unwrap_or_else(|_| {
                panic!("the server does not say where it listens:\n{}", self.log())
            });
            self.addresses.push(address);
        }
    }

    /// Returns the address of the first listener.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address_of(0)
    }

    /// Returns the address of a listener, counted from 0 in the order of the command line.
    pub(crate) fn address_of(&self, listener: usize) -> SocketAddr {
        let address = &self.addresses[listener];
        address
            .parse()
            .unwrap_or_else(|_| panic!("`{address}` is no IP address with a port"))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().clone()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the server is running");
    }

    /// Waits for a line of the log with this text.
    pub(crate) fn await_log(&self, text: &str) {
        let seen = |log: &String| log.contains(text);
        wait::until(text, CLEAN_UP_DEADLINE, || self.log(), seen);
    }

    pub(crate) fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(directory)
            .expect("the server is running")
            .count()
    }

    /// Returns the number of descriptors of a server that has been used and is at rest: a
    /// connection that just got its response may still be open on its side.
    pub(crate) fn descriptors_at_rest(&self) -> usize {
        self.descriptors_at_rest_beside(self.address())
    }

    /// The same of a server that is used by this address.
    pub(crate) fn descriptors_at_rest_beside(&self, address: SocketAddr) -> usize {
        http::assert_hello(address);
        let mut last = VecDeque::new();
        let observe = || {
            last.push_back(self.descriptors());
            if last.len() > OBSERVATIONS_AT_REST {
                last.pop_front();
            }
            last.clone()
        };
        let observed = wait::until("descriptors at rest", START_DEADLINE, observe, |observed| {
            observed.len() == OBSERVATIONS_AT_REST && observed.iter().all(|n| *n == observed[0])
        });
        observed[0]
    }

    pub(crate) fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .expect("the server is running");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("a process has a resident set");
        let number = line.split_whitespace().next().expect("it has a size");
        number.parse().expect("the size is a number")
    }

    /// Waits until no more descriptors are open than at `baseline`.
    pub(crate) fn await_descriptors(&self, baseline: usize) {
        wait::until(
            "descriptors back at their baseline",
            CLEAN_UP_DEADLINE,
            || self.descriptors(),
            |descriptors| *descriptors <= baseline,
        );
    }

    /// Asserts that the server runs, and no handler or loop has panicked.
    pub(crate) fn assert_sound(&mut self) {
        let ended = self.child.try_wait().expect("the server is our child");
        assert!(
            ended.is_none(),
            "the server ended: {ended:?}\n{}",
            self.log()
        );
        let log = self.log();
        let panic = log.lines().find(|line| line.contains("panicked"));
        assert!(panic.is_none(), "the log tells of a panic: {panic:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; a test that cares has asked.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps the log, and sends on each address that it names as listening.
fn follow(stderr: ChildStderr, log: &Mutex<String>, addresses: &Sender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if let Some(address) = listening_address(&line) {
            // The receiver is gone once all listeners are known.
            let _ = addresses.send(address);
        }
        let mut log = log.lock();
        log.push_str(&line);
        log.push('\n');
    }
}

fn listening_address(line: &str) -> Option<String> {
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    let fields = &event["fields"];
    if fields["message"] != "listening" && fields["message"] != "status at" {
        return None;
    }
    fields["address"].as_str().map(str::to_owned)
}
