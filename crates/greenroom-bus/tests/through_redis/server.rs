//! A Redis server of the test's own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use greenroom_bus::{Bus, RedisSettings, RemoteStatus};
use greenroom_test_servers::Certificates;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::ports::free_port;

pub(crate) struct Server {
    pub(crate) port: u16,
    kind: Kind,
    arguments: Vec<String>,
    directory: TempDir,
    process: Option<Child>,
}

/// The role of a server, and its way to listen.
enum Kind {
    Plain,
    /// With the certificate, the key and the clients' authority in its directory.
    Tls,
    /// In a cluster, with its bus at this port.
    InCluster {
        bus: u16,
    },
    /// A Sentinel of this master.
    Sentinel {
        master: u16,
        password: String,
    },
}

/// The clients that a server with TLS lets in.
#[derive(Clone, Copy)]
pub(crate) enum Clients {
    Anybody,
    /// With a certificate of the authority.
    Signed,
}

/// Connects with short waits, so that the tests are short.
pub(crate) fn impatient(settings: RedisSettings) -> Bus {
    let millis = Duration::from_millis;
    Bus::redis(settings.backoff(millis(5), millis(50))).expect("a thread")
}

pub(crate) fn status(bus: &Bus) -> RemoteStatus {
    bus.status().redis.expect("it is there")
}

impl Server {
    /// The channels of `/a`, `/*` and `/**`, the last two of which are one.
    pub(crate) const CHANNELS_OF_A: usize = 2;

    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::prepare(arguments).started()
    }

    pub(crate) fn start_tls(certificates: &Certificates, clients: Clients) -> Self {
        Self::start_tls_with(
            certificates,
            match clients {
                Clients::Anybody => &["--tls-auth-clients", "no"],
                Clients::Signed => &[],
            },
        )
    }

    pub(crate) fn start_tls_with(certificates: &Certificates, arguments: &[&str]) -> Self {
        let mut server = Self::prepare(arguments);
        server.kind = Kind::Tls;
        let write = |name, text: &str| {
            fs::write(server.directory.path().join(name), text).expect("there is room");
        };
        write("server.pem", &certificates.server);
        write("server.key", &certificates.server_key);
        write("ca.pem", &certificates.authority);
        server.started()
    }

    pub(crate) fn start_in_cluster(arguments: &[&str]) -> Self {
        let mut server = Self::prepare(arguments);
        server.kind = Kind::InCluster { bus: free_port() };
        server.started()
    }

    /// Returns the port on which it speaks with its cluster.
    pub(crate) fn cluster_port(&self) -> u16 {
        match self.kind {
            Kind::InCluster { bus } => bus,
            _ => panic!("it is in no cluster"),
        }
    }

    /// Starts a Sentinel whose word alone is enough to declare the master dead, which it does not
    /// of itself.
    pub(crate) fn start_sentinel(master: &Server, password: &str) -> Self {
        let mut server = Self::prepare(&[]);
        server.kind = Kind::Sentinel {
            master: master.port,
            password: password.to_owned(),
        };
        server.started()
    }

    fn started(mut self) -> Self {
        while !self.try_run() {
            self.port = free_port();
            if let Kind::InCluster { bus } = &mut self.kind {
                *bus = free_port();
            }
        }
        self
    }

    /// Reserves a port for a server that does not run yet.
    pub(crate) fn prepared() -> Self {
        Self::prepare(&[])
    }

    fn prepare(arguments: &[&str]) -> Self {
        Self {
            port: free_port(),
            kind: Kind::Plain,
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

    /// Kills it as the system kills a process for want of memory: without a word to its clients.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it runs");
            process.wait().expect("it has ended");
        }
    }

    /// Stops it, with its connections open.
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

    pub(crate) fn tls_settings(&self, host: &str) -> RedisSettings {
        let url = format!("rediss://{host}:{}", self.port);
        RedisSettings::new(&url).expect("an address")
    }

    pub(crate) fn bus(&self) -> Bus {
        Bus::redis(self.settings()).expect("a thread")
    }

    /// Counts the connections of buses.
    pub(crate) fn connections(&self) -> usize {
        let clients: String = self.ask(&["CLIENT", "LIST"]);
        // One is that of the question.
        clients.lines().count() - 1
    }

    /// Sends a command to the server itself, past the bus.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        self.ask_as("", command)
    }

    /// Sends a command with a log-in written `user:password@`.
    pub(crate) fn ask_as<T: redis::FromRedisValue>(&self, login: &str, command: &[&str]) -> T {
        self.try_ask_as(login, command).expect("a reply")
    }

    /// Sends a command that the server may refuse.
    pub(crate) fn try_ask_as<T: redis::FromRedisValue>(
        &self,
        login: &str,
        command: &[&str],
    ) -> redis::RedisResult<T> {
        let url = format!("redis://{login}127.0.0.1:{}", self.port);
        let client = redis::Client::open(url).expect("an address");
        let mut connection = client.get_connection()?;
        let mut request = redis::cmd(command[0]);
        request.arg(&command[1..]).query(&mut connection)
    }

    fn try_run(&mut self) -> bool {
        // The server ends with the test's thread, however that ends.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "redis-server"])
            .args(self.own_arguments())
            .args(["--bind", "127.0.0.1", "--dir"])
            .arg(self.directory.path())
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut process = process.expect("setpriv of util-linux");
        let output = process.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let ready = match self.kind {
            Kind::Sentinel { .. } => "Sentinel ID is",
            _ => "Ready to accept connections",
        };
        let is_ready = lines.any(|line| line.contains(ready));
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

    fn own_arguments(&self) -> Vec<String> {
        let port = self.port.to_string();
        let file = |name| self.directory.path().join(name).display().to_string();
        let in_memory = ["--save", "", "--appendonly", "no"].map(str::to_owned);
        let mut own = Vec::from(in_memory);
        let mut add = |name: &str, value: String| own.extend([name.to_owned(), value]);
        match &self.kind {
            Kind::Plain => add("--port", port),
            Kind::Tls => {
                add("--port", "0".to_owned());
                add("--tls-port", port);
                add("--tls-cert-file", file("server.pem"));
                add("--tls-key-file", file("server.key"));
                add("--tls-ca-cert-file", file("ca.pem"));
            }
            Kind::InCluster { bus } => {
                add("--port", port);
                add("--cluster-enabled", "yes".to_owned());
                add("--cluster-port", bus.to_string());
            }
            Kind::Sentinel { master, password } => {
                let config = sentinel_config(self.directory.path(), *master, password);
                own = vec![config.display().to_string()];
                own.extend(["--sentinel", "--port", &port].map(str::to_owned));
            }
        }
        own
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

/// Writes a Sentinel's configuration. An hour without a reply makes a master dead: the tests decide
/// themselves when it is. A failover that finds no replica which it knows well is tried again after
/// ten seconds, not after six minutes.
fn sentinel_config(directory: &Path, master: u16, password: &str) -> PathBuf {
    let file = directory.join("sentinel.conf");
    let text = format!(
        "sentinel monitor main 127.0.0.1 {master} 1\n\
         sentinel auth-pass main {password}\n\
         sentinel down-after-milliseconds main 3600000\n\
         sentinel failover-timeout main 5000\n"
    );
    fs::write(&file, text).expect("there is room");
    file
}
