//! A Redis of the test's own.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use tempfile::TempDir;

/// Ports below those that the system gives to connections: a client that retries a port of those
/// while nobody listens would some day connect to itself.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

pub(crate) struct Server {
    port: u16,
    directory: TempDir,
    process: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let mut server = Self {
            port: free_port(),
            directory: TempDir::new().expect("a directory"),
            process: None,
        };
        while !server.try_run() {
            server.port = free_port();
        }
        server
    }

    /// Restarts it, empty, on the port that it had.
    pub(crate) fn run(&mut self) {
        assert!(
            self.try_run(),
            "redis-server does not start on port {}",
            self.port
        );
    }

    /// Kills it, as the system does for want of memory: without a word to its clients.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it runs");
            process.wait().expect("it has ended");
        }
    }

    pub(crate) fn url(&self) -> url::Url {
        let url = format!("redis://127.0.0.1:{}", self.port);
        url.parse().expect("it is a URL")
    }

    fn try_run(&mut self) -> bool {
        // The server ends with the thread of the test, even after a panic.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "redis-server"])
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(self.directory.path())
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
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
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
