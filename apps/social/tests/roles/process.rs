//! A process of the program that serves operators only.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http::StatusCode;
use rustls::crypto::ring;

use crate::kit::app::{Client, png};
use crate::kit::port;

/// Longest time of a start, on an overloaded machine.
const START: Duration = Duration::from_mins(3);
/// Interval of asking whether it is there.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// A process, which is killed when this is dropped.
pub(crate) struct Process {
    config: PathBuf,
    directory: PathBuf,
    address: String,
    child: Child,
    http: reqwest::Client,
}

impl Process {
    /// Starts it in a directory of its own, and waits until it is ready.
    pub(crate) async fn start(config: &Path, directory: &Path) -> Self {
        // An error means that a provider is installed already.
        let _ = ring::default_provider().install_default();
        fs::create_dir_all(directory).expect("there is room");
        let address = format!("127.0.0.1:{}", port::free_port());
        let process = Self {
            child: spawn(config, directory, &address),
            config: config.to_owned(),
            directory: directory.to_owned(),
            address,
            http: reqwest::Client::new(),
        };
        process.until_ready().await;
        process
    }

    /// Starts it again after [`kill`](Self::kill).
    pub(crate) async fn restart(&mut self) {
        self.child = spawn(&self.config, &self.directory, &self.address);
        self.until_ready().await;
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs, and it is ours");
        self.child.wait().expect("it was killed");
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.expect("kill can be run").success(), "{name}");
    }

    /// Gets a path at its address for operators.
    pub(crate) async fn get(&self, path: &str) -> (StatusCode, String) {
        let response = self.http.get(format!("http://{}{path}", self.address));
        let response = response.send().await.expect("it responds");
        let status = response.status();
        (status, response.text().await.expect("it is whole"))
    }

    /// Waits until a picture was resized by this process: then the web knows of it.
    pub(crate) async fn known_to(&self, client: &Client, album: &str) {
        while !self.has_resized().await {
            client.upload(album, &[("picture", &png(8, 8))]).await;
        }
    }

    async fn has_resized(&self) -> bool {
        let (_, text) = self.get("/greenroom/status").await;
        let status: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let stages = status["stages"].as_array().expect("it has stages");
        let stage = stages.iter().find(|stage| stage["name"] == "pictures");
        stage.expect("it has this one")["completed"] != 0
    }

    /// Returns the number of TCP ports that it listens at (proc(5), state `0A`).
    pub(crate) fn listening(&self) -> usize {
        let descriptors = format!("/proc/{}/fd", self.child.id());
        let links = fs::read_dir(descriptors).expect("it runs").flatten();
        let links = links.filter_map(|entry| fs::read_link(entry.path()).ok());
        let sockets: Vec<_> = links.map(|link| link.display().to_string()).collect();
        let table = fs::read_to_string("/proc/net/tcp").expect("there is one");
        let rows = table.lines().map(|row| row.split_whitespace().collect());
        let listening = rows.filter(|row: &Vec<&str>| row.get(3) == Some(&"0A"));
        let is_ours = |row: &Vec<&str>| sockets.contains(&format!("socket:[{}]", row[9]));
        listening.filter(is_ours).count()
    }

    async fn until_ready(&self) {
        let deadline = Instant::now() + START;
        loop {
            let asked = self.http.get(format!("http://{}/ready", self.address));
            if asked
                .send()
                .await
                .is_ok_and(|response| response.status().is_success())
            {
                return;
            }
            let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(
                Instant::now() < deadline,
                "it is not ready; its log:\n{log}"
            );
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(config: &Path, directory: &Path, address: &str) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(directory.join("log"))
        .expect("there is room for a log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_social"));
    command
        .arg("--config")
        .arg(config)
        .args(["--status-listen", address])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    command
        .spawn()
        .expect("the program was built for this test")
}
