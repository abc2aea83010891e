//! A Redis of the test's own.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use greenroom_bus::{Bus, RedisSettings};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Below the ports that the system gives to connections: a client that tries again and again to
/// connect to a port of those, while nobody listens, would some day connect to itself.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

pub(crate) struct Server {
    port: u16,
    arguments: Vec<String>,
    directory: TempDir,
    process: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let mut server = Self::prepare(arguments);
        while !server.try_run() {
            server.port = free_port();
        }
        server
    }

    /// Has a port, but does not run yet.
    pub(crate) fn prepare(arguments: &[&str]) -> Self {
        Self {
            port: free_port(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            directory: TempDir::new().expect("a directory"),
            process: None,
        }
    }

    /// Runs it on its port, to which it may have been bound before.
    pub(crate) fn run(&mut self) {
        assert!(
            self.try_run(),
            "redis-server does not start on port {}",
            self.port
        );
    }

    /// As the system kills a process for want of memory: without a word to its clients.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it runs");
            process.wait().expect("it has ended");
        }
    }

    /// Stands still, with its connections open.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn settings(&self) -> RedisSettings {
        RedisSettings::new(&self.url()).expect("an address")
    }

    pub(crate) fn bus(&self) -> Bus {
        Bus::redis(self.settings()).expect("a thread")
    }

    /// Asks the server itself, past the bus.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        let client = redis::Client::open(self.url()).expect("an address");
        let mut connection = client.get_connection().expect("it runs");
        let mut request = redis::cmd(command[0]);
        request
            .arg(&command[1..])
            .query(&mut connection)
            .expect("an answer")
    }

    fn try_run(&mut self) -> bool {
        // Whatever ends the test's thread ends the server.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "redis-server"])
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(self.directory.path())
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut process = process.expect("setpriv of util-linux");
        let output = process.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let is_ready = lines.any(|line| line.contains("Ready to accept connections"));
        if is_ready {
            thread::spawn(move || lines.for_each(drop));
            self.process = Some(process);
        } else {
            let status = process.wait().expect("it has ended");
            assert_ne!(
                status.code(),
                Some(127),
                "redis-server is not installed: run `cargo xtask tools`"
            );
        }
        is_ready
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it runs");
        kill_process(Pid::from_child(process), signal).expect("it runs");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let ports = PORTS.end - PORTS.start;
    let begin = u16::try_from(std::process::id() % u32::from(ports)).expect("it is below");
    loop {
        let offset = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % ports;
        let port = PORTS.start + offset;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
