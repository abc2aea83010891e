//! The parts that replicas share: a database that speaks `MongoDB`'s protocol, Redis, and `HAProxy`
//! before them.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::process::free_address;
use super::{Process, Storage};

/// Database and Redis; they end with this value.
#[derive(Debug)]
pub(crate) struct Stores {
    _database: Process,
    _redis: Process,
    storage: Storage,
}

/// The balancer, `HAProxy`; it ends with this value.
#[derive(Debug)]
pub(crate) struct Balancer {
    _process: Process,
    address: SocketAddr,
}

impl Stores {
    /// Starts both, empty, in a directory.
    pub(crate) fn start(ferretdb: &Path, directory: &Path) -> anyhow::Result<Self> {
        ensure!(
            ferretdb.is_file(),
            "FerretDB is not at {}: `cargo xtask tools` builds it, and --ferretdb says where it is",
            ferretdb.display()
        );
        let (database, database_address) = start_database(ferretdb, directory)?;
        let (redis, redis_address) = start_redis(directory)?;
        Ok(Self {
            _database: database,
            _redis: redis,
            storage: Storage::Shared {
                store: format!("mongodb://{database_address}/social"),
                redis: format!("redis://{redis_address}"),
            },
        })
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }
}

fn start_database(program: &Path, directory: &Path) -> anyhow::Result<(Process, SocketAddr)> {
    let address = free_address()?;
    let data = directory.join("ferretdb");
    fs::create_dir_all(&data).context("a directory for FerretDB")?;
    let mut command = Command::new(program);
    command
        .arg("--handler=sqlite")
        .arg(format!("--sqlite-url=file:{}/", data.display()))
        .arg(format!("--listen-addr={address}"))
        .args(["--debug-addr=-", "--telemetry=disable", "--log-level=error"])
        .arg(format!("--state-dir={}", data.display()));
    let process = Process::start("ferretdb", &mut command, directory, address)?;
    Ok((process, address))
}

fn start_redis(directory: &Path) -> anyhow::Result<(Process, SocketAddr)> {
    let address = free_address()?;
    let mut command = Command::new("redis-server");
    command
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(["--port", &address.port().to_string()])
        .arg("--dir")
        .arg(directory);
    let process = Process::start("redis-server", &mut command, directory, address)?;
    Ok((process, address))
}

impl Balancer {
    /// Starts it before these replicas, whose health it checks.
    pub(crate) fn start(directory: &Path, replicas: &[SocketAddr]) -> anyhow::Result<Self> {
        let address = free_address()?;
        let file = directory.join("haproxy.cfg");
        fs::write(&file, configuration(address, replicas)).context("HAProxy's configuration")?;
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&file);
        let process = Process::start("haproxy", &mut command, directory, address)?;
        Ok(Self {
            _process: process,
            address,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path that begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Returns the configuration. A request that no replica has begun to respond to goes to another
/// one: each whose connection failed, and of those that were sent only what may be repeated, which
/// is what only reads.
fn configuration(address: SocketAddr, replicas: &[SocketAddr]) -> String {
    let numbered = (1..).zip(replicas);
    let servers: Vec<String> = numbered
        .map(|(number, replica)| format!("    server replica{number} {replica} check"))
        .collect();
    let servers = servers.join("\n");
    format!(
        "\
global
    maxconn 8000
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout tunnel 1h
    retries 3
    option redispatch 1
    retry-on conn-failure empty-response
frontend site
    bind {address}
    default_backend replicas
backend replicas
    balance roundrobin
    option httpchk GET /health
    http-check expect status 200
    http-request disable-l7-retry unless METH_GET
    default-server inter 500ms fall 2 rise 1 observe layer4 error-limit 1 on-error mark-down
{servers}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_replica_has_a_line() {
        let replicas = [([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into()];
        let text = configuration(([127, 0, 0, 1], 80).into(), &replicas);
        assert!(text.contains("server replica1 127.0.0.1:1 check\n"));
        assert!(text.ends_with("server replica2 127.0.0.1:2 check\n"));
    }
}
