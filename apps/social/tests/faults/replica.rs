//! The program, as a process that can be killed.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::http_client;
use crate::kit::port;

/// Longest time of a start, on an overloaded machine.
const START: Duration = Duration::from_mins(3);

/// One replica. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    flags: Vec<String>,
    log: PathBuf,
    child: Child,
}

impl Replica {
    /// Starts the program with these flags on a free port, and waits until it responds.
    pub(crate) async fn start(directory: &Path, name: &str, flags: Vec<String>) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free_port()));
        let log = directory.join(format!("{name}.log"));
        let child = spawn(address, &flags, &log);
        let replica = Self {
            address,
            flags,
            log,
            child,
        };
        replica.wait_until_ready().await;
        replica
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs, and it is ours");
        self.child.wait().expect("it was killed");
    }

    /// Restarts it, on the same port.
    pub(crate) async fn restart(&mut self) {
        self.child = spawn(self.address, &self.flags, &self.log);
        self.wait_until_ready().await;
    }

    /// Polls, because a process does not announce that it is ready.
    async fn wait_until_ready(&self) {
        let deadline = Instant::now() + START;
        let url = format!("http://{}/health", self.address);
        let client = http_client();
        loop {
            if client
                .get(&url)
                .send()
                .await
                .is_ok_and(|response| response.status().is_success())
            {
                return;
            }
            assert!(Instant::now() < deadline, "{}", self.log_tail());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        format!("{} does not respond; its log:\n{log}", self.address)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(address: SocketAddr, flags: &[String], log: &Path) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(log)
        .expect("there is room for a log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_social"));
    command.arg("--listen").arg(address.to_string()).args(flags);
    for limit in ["LOG_INS", "SIGN_UPS", "CHANGES", "UPLOADS", "REQUESTS"] {
        command.env(format!("SOCIAL_LIMITS__{limit}"), "0");
    }
    let stdio = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    stdio.spawn().expect("the program was built for this test")
}
