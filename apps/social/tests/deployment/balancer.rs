//! The real `HAProxy` with the file for users, and replicas that only give their names.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::names::Names;
use crate::kit::port;

const VARIABLES: [&str; 4] = ["GATEWAY", "REPLICA1", "REPLICA2", "REPLICA3"];

fn haproxy() -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("haproxy");
    command.env("PATH", format!("{path}:/usr/sbin"));
    command.stdin(Stdio::null());
    command
}

/// Checks that it accepts the file, with these values of its variables.
pub(crate) fn check(file: &Path, value: impl Fn(&str) -> String) {
    let output = haproxy()
        .args(["-c", "-f"])
        .arg(file)
        .envs(VARIABLES.map(|name| (name, value(name))))
        .output()
        .expect("HAProxy is installed: run `cargo xtask tools`");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !said.contains("WARNING"),
        "{said}"
    );
}

/// A server that responds to everything with its name, until dropped.
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Replica {
    pub(crate) async fn start(address: &str, name: &'static str) -> Self {
        let listener = TcpListener::bind(address).await.expect("it is free");
        let address = listener.local_addr().expect("it is bound");
        let router = Router::new().fallback(get(move || async move { name }));
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it listens");
        });
        Self { address, task }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) struct Balancer {
    port: u16,
    process: Child,
    _directory: TempDir,
}

impl Balancer {
    /// Starts it with this name server, and this replica three times.
    pub(crate) fn start(file: &str, names: &Names, replica: &str) -> Self {
        // For the client of the test.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let directory = tempfile::tempdir().expect("there is room");
        let port = port::free_port();
        let server = format!("nameserver test {}", names.address);
        let file = file.replace("parse-resolv-conf", &server);
        let file = file.replace("}:5001\"", &format!("}}:{port}\""));
        let path = directory.path().join("haproxy.cfg");
        fs::write(&path, file).expect("there is room");
        let process = haproxy()
            .arg("-f")
            .arg(path)
            .envs(VARIABLES.map(|name| (name, replica)))
            .env("GATEWAY", "127.0.0.1")
            .stdout(Stdio::null())
            .spawn()
            .expect("HAProxy is installed: run `cargo xtask tools`");
        Self {
            port,
            process,
            _directory: directory,
        }
    }

    /// Sends requests until the response begins so.
    pub(crate) async fn until_response(&self, text: &str, deadline: Duration) {
        let asked = timeout(deadline, async {
            while !self
                .ask()
                .await
                .is_ok_and(|response| response.starts_with(text))
            {
                sleep(Duration::from_millis(50)).await;
            }
        });
        assert!(asked.await.is_ok(), "never `{text}`");
    }

    async fn ask(&self) -> reqwest::Result<String> {
        let url = format!("http://127.0.0.1:{}/", self.port);
        reqwest::get(url).await?.text().await
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
