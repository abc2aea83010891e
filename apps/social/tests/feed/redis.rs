//! A Redis of the test's own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::TempDir;

use super::ports::free_port;

pub(crate) struct Server {
    port: u16,
    directory: TempDir,
    /// The arguments before those that it always has; the first may be a file.
    arguments: Vec<String>,
    process: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a whole cluster: a server with all slots.
    pub(crate) fn start_cluster(password: &str) -> Self {
        let port = free_port().to_string();
        let server = Self::start_with(&[
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &port,
            "--cluster-announce-ip",
            "127.0.0.1",
            "--requirepass",
            password,
        ]);
        let url = format!("redis://:{password}@127.0.0.1:{}", server.port);
        let client = redis::Client::open(url).expect("an address");
        let mut connection = client.get_connection().expect("it listens");
        let mut ask = |command: &[&str]| -> redis::Value {
            let asked = redis::cmd("CLUSTER").arg(command).query(&mut connection);
            asked.expect("it does so")
        };
        ask(&["ADDSLOTSRANGE", "0", "16383"]);
        let mut is_fine = || format!("{:?}", ask(&["INFO"])).contains("cluster_state:ok");
        while !is_fine() {
            thread::yield_now();
        }
        server
    }

    /// Starts a Sentinel of this master, which it knows as `main`.
    pub(crate) fn start_sentinel(master: &Self, password: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        let file = directory.path().join("sentinel.conf");
        let monitor = format!("sentinel monitor main 127.0.0.1 {} 1\n", master.port);
        let login = format!("sentinel auth-pass main {password}\n");
        fs::write(&file, monitor + &login).expect("there is room");
        let file = file.display().to_string();
        Self::start_in(directory, &[&file, "--sentinel"])
    }

    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::start_in(TempDir::new().expect("a directory"), arguments)
    }

    fn start_in(directory: TempDir, arguments: &[&str]) -> Self {
        let mut server = Self {
            port: free_port(),
            directory,
            arguments: arguments.iter().map(ToString::to_string).collect(),
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
            .args(&self.arguments)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut process = process.expect("setpriv of util-linux");
        let output = process.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let is_ready = lines.any(|line| {
            line.contains("Ready to accept connections") || line.contains("Sentinel ID is")
        });
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
