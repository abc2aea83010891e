//! The three servers of NATS.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;

use greenroom_test_servers::nats_server;
use serde_json::Value;

use super::{Machine, World, expect_success};
use crate::plan::SERVERS;

/// The disk of a server.
const DISK: &str = "size=64m";

/// The ports of a server: of clients, of other servers, and of its status.
pub(super) struct Ports {
    client: u16,
    cluster: u16,
    monitor: u16,
}

impl Ports {
    pub(super) fn new(has_namespaces: bool) -> Self {
        if has_namespaces {
            return Self {
                client: 4222,
                cluster: 6222,
                monitor: 8222,
            };
        }
        let free = || {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.local_addr().expect("it is bound").port()
        };
        Self {
            client: free(),
            cluster: free(),
            monitor: free(),
        }
    }
}

impl World {
    pub(super) fn address(&self, server: usize) -> String {
        match &self.holders {
            Some(_) => format!("10.77.0.{}", Machine::Server(server).number()),
            None => "127.0.0.1".to_owned(),
        }
    }

    pub(super) fn urls(&self) -> String {
        let url = |server| {
            format!(
                "nats://{}:{}",
                self.address(server),
                self.ports[server].client
            )
        };
        (0..SERVERS).map(url).collect::<Vec<_>>().join(",")
    }

    fn store(&self, server: usize) -> PathBuf {
        self.directory().join(format!("store{server}"))
    }

    fn config(&self, server: usize) -> PathBuf {
        self.directory().join(format!("server{server}.conf"))
    }

    /// Writes the configuration of a server, and gives it a small disk.
    pub(super) fn prepare_server(&self, server: usize) {
        let routes: Vec<_> = (0..SERVERS)
            .map(|other| {
                let port = self.ports[other].cluster;
                format!("nats-route://{}:{port}", self.address(other))
            })
            .collect();
        let (address, ports, store) = (
            self.address(server),
            &self.ports[server],
            self.store(server),
        );
        let text = format!(
            "server_name: server{server}\nlisten: {address}:{}\nhttp: {address}:{}\n\
             jetstream {{ store_dir: \"{}\", max_memory_store: 64MB, max_file_store: 1GB }}\n\
             cluster {{ name: faults, listen: {address}:{}, routes: [{}] }}\n",
            ports.client,
            ports.monitor,
            store.display(),
            ports.cluster,
            routes.join(", "),
        );
        fs::write(self.config(server), text).expect("there is room");
        fs::create_dir(&store).expect("it is new");
        if self.holders.is_some() {
            let mut command = self.on(Machine::Server(server), "mount");
            command.args(["-t", "tmpfs", "-o", DISK, "none"]).arg(store);
            expect_success(&mut command);
        }
    }

    /// Runs a server that does not run.
    pub(crate) fn run_server(&mut self, server: usize) {
        self.started += 1;
        let name = format!("{:02}-server{server}", self.started);
        let machine = Machine::Server(server);
        let mut command = self.on(machine, nats_server());
        command.arg("-c").arg(self.config(server));
        self.spawn(machine, &name, command);
    }

    /// Returns the server that leads the bucket of states, if one says that it does.
    pub(crate) fn leader(&self) -> Option<usize> {
        let name = format!("KV_{}_states", self.prefix);
        (0..SERVERS).find(|server| {
            let url = format!(
                "http://{}:{}/jsz?streams=1",
                self.address(*server),
                self.ports[*server].monitor
            );
            let mut command = self.on(Machine::Observer, "curl");
            let output = command
                .args(["--silent", "--max-time", "1", &url])
                .stderr(Stdio::null())
                .output()
                .expect("curl");
            let status: Option<Value> = serde_json::from_slice(&output.stdout).ok();
            status.is_some_and(|status| leads(&status, &name, &format!("server{server}")))
        })
    }

    /// Fills the disk of a server.
    pub(crate) fn fill(&self, server: usize) {
        let fill = self.store(server).join("fill");
        let mut command = self.on(Machine::Server(server), "dd");
        command.args(["if=/dev/zero", "bs=64k"]);
        command.arg(format!("of={}", fill.display()));
        // It ends when there is no more room, with an error.
        let _ = command.stderr(Stdio::null()).status();
    }

    /// Makes room on the disk of a server again.
    pub(crate) fn empty(&self, server: usize) {
        let mut command = self.on(Machine::Server(server), "rm");
        command.arg(self.store(server).join("fill"));
        expect_success(&mut command);
    }
}

fn leads(status: &Value, stream: &str, server: &str) -> bool {
    let accounts = status["account_details"].as_array();
    let streams = accounts
        .into_iter()
        .flatten()
        .filter_map(|account| account["stream_detail"].as_array())
        .flatten();
    let mut named = streams.filter(|detail| detail["name"] == stream);
    named.any(|detail| detail["cluster"]["leader"] == server)
}
