//! Three replicas, two processes for pictures and three NATS servers in network namespaces behind
//! `HAProxy`, by the script that users run. Needs root.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tempfile::TempDir;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

/// A network for documentation (RFC 5737), so that it is nobody's.
const NETWORK: &str = "198.51.100";
const GATEWAY: &str = "198.51.100.1:5001";

struct Cluster {
    directory: TempDir,
    /// The lock of the network's names, so that two test runs on one machine take turns.
    _turn: File,
}

impl Cluster {
    fn up() -> Self {
        let turn = std::env::temp_dir().join("greenroom-test-cluster.lock");
        let turn = File::create(turn).expect("the lock's file can be made");
        turn.lock().expect("it can be locked");
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let cluster = Self {
            directory,
            _turn: turn,
        };
        // Removes what an interrupted run has left.
        cluster.run(&["down"]);
        cluster.run(&["up"]);
        cluster
    }

    fn run(&self, arguments: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/cluster");
        let output = Command::new(script)
            .args(arguments)
            .env("SOCIAL", env!("CARGO_BIN_EXE_social"))
            .env("DATA", self.directory.path())
            .env("CLUSTER", "test")
            .env("NETWORK", NETWORK)
            .env("SAMPLE", "false")
            .output()
            .expect("the script can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "cluster {arguments:?}: {said}{}",
            logs(self.directory.path())
        );
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run(&["down"]);
    }
}

fn logs(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let tail = text.lines().rev().take(20).collect::<Vec<_>>();
        format!("\n{}:\n{}", path.display(), tail.join("\n"))
    };
    entries
        .map(|entry| entry.path())
        .filter(is_log)
        .map(read)
        .collect()
}

async fn timeline() -> reqwest::Result<String> {
    let response = reqwest::get(format!("http://{GATEWAY}/api/timeline")).await?;
    response.error_for_status()?.text().await
}

/// The page's feed breaks when its replica dies, and is back at the next try.
async fn feed()
-> impl StreamExt<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin {
    let (mut socket, _) = connect_async(format!("ws://{GATEWAY}/feed"))
        .await
        .expect("the balancer passes WebSockets on");
    let watch = Message::text(r#"{"watch": {"/timeline": null}}"#);
    socket.send(watch).await.expect("it is connected");
    socket
}

#[tokio::test]
async fn the_network_goes_on_while_a_replica_is_dead() {
    // For the client: the program installs a provider of its own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cluster = Cluster::up();
    let page = timeline().await.expect("the balancer has replicas");
    assert!(page.contains("\"pictures\":[]"), "{page}");

    let mut feed = self::feed().await;
    let first = feed
        .next()
        .await
        .expect("it stays")
        .expect("the watch gets a response");
    assert!(
        first.to_text().is_ok_and(|text| text.contains("\"at\"")),
        "{first:?}"
    );

    cluster.run(&["kill", "1"]);
    // Requests before the balancer notices the loss of replica 1 are retried at another one.
    for _ in 0..50 {
        timeline().await.expect("two replicas are there");
    }
    cluster.run(&["kill", "2"]);
    for _ in 0..50 {
        timeline().await.expect("one replica is there");
    }
    let again = tokio::time::timeout(Duration::from_mins(1), self::feed()).await;
    let response = again.expect("one replica takes it").next().await;
    assert!(
        response.is_some_and(|response| response.is_ok()),
        "the watch gets a response"
    );
    cluster.run(&["start", "1"]);
    cluster.run(&["kill", "images1"]);
    cluster.run(&["kill", "nats1"]);
    cluster.run(&["start", "nats1"]);
    cluster.run(&["start", "images1"]);
}
