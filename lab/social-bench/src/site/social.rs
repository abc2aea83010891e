//! The program under test.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::Process;
use super::process::free_address;

/// Limits on rates that a single load generator would hit: each is switched off.
const LIMITS: [&str; 5] = ["LOG_INS", "SIGN_UPS", "CHANGES", "UPLOADS", "REQUESTS"];
/// Longest time until its health check succeeds.
const HEALTH_MAX: Duration = Duration::from_secs(5);

/// The storage of a replica.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    /// `SQLite` in the directory.
    Embedded,
    /// A database and a Redis that replicas share.
    Shared {
        /// A URL such as `mongodb://127.0.0.1:27017/social`.
        store: String,
        /// A URL such as `redis://127.0.0.1:6379`.
        redis: String,
    },
}

/// A replica of the social network, with limits on rates off and without sample data.
#[derive(Debug)]
pub(crate) struct Social {
    process: Process,
    address: SocketAddr,
}

impl Social {
    /// Starts it in a directory, where pictures go too, and waits until it is healthy. `toml` is
    /// its further configuration.
    pub(crate) fn start(
        program: &Path,
        name: &str,
        directory: &Path,
        storage: &Storage,
        toml: &str,
    ) -> anyhow::Result<Self> {
        let address = free_address()?;
        let config: PathBuf = directory.join(format!("{name}.toml"));
        std::fs::write(&config, toml).context("the configuration")?;
        let mut command = Command::new(program);
        command
            .args(["--listen", &address.to_string(), "--sample", "false"])
            .arg("--config")
            .arg(&config)
            .arg("--files")
            .arg(directory.join("files"));
        match storage {
            Storage::Embedded => {
                let database = directory.join("social.db");
                command.args(["--store", &format!("sqlite:{}", database.display())]);
            }
            Storage::Shared { store, redis } => {
                command.args(["--store", store, "--redis", redis]);
            }
        }
        for limit in LIMITS {
            command.env(format!("SOCIAL_LIMITS__{limit}"), "0");
        }
        command.env("RUST_LOG", "warn").current_dir(directory);
        let mut process = Process::start(name, &mut command, directory, address)?;
        process
            .wait_until(|| is_well(address))
            .with_context(|| format!("{name}: GET /health"))?;
        Ok(Self { process, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the URL of a path that begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Kills it as `kill -9` does; returns the moments right before that and when it was gone.
    pub(crate) fn kill(&mut self) -> anyhow::Result<RangeInclusive<Instant>> {
        self.process.kill()
    }
}

/// True if it responds to `/health` with 200.
pub(super) fn is_well(address: SocketAddr) -> bool {
    health(address).is_ok_and(|response| response.starts_with("HTTP/1.1 200"))
}

fn health(address: SocketAddr) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(HEALTH_MAX))?;
    let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes())?;
    let mut response = String::new();
    socket.read_to_string(&mut response)?;
    Ok(response)
}
