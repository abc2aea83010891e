//! Clients of the live feed: they reconnect with their positions, and have seen each event once, in
//! order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::client::Replicas;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Pause of a client between two tries to reconnect.
const PAUSE: Duration = Duration::from_millis(100);

/// Longest delivery of an event.
const PATIENCE: Duration = Duration::from_mins(3);

/// A client that watches some topics from their beginning.
pub(crate) struct Watcher {
    seen: watch::Receiver<BTreeMap<String, u64>>,
    task: JoinHandle<()>,
}

impl Watcher {
    /// Starts a client; `first` is the replica to which it connects first.
    pub(crate) fn start(replicas: &Arc<Replicas>, topics: Vec<String>, first: usize) -> Self {
        let positions = topics.into_iter().map(|topic| (topic, 0)).collect();
        let (sender, seen) = watch::channel(positions);
        let replicas = Arc::clone(replicas);
        let task = tokio::spawn(watch_for_ever(replicas, sender, first));
        Self { seen, task }
    }

    /// Waits until it has seen the topics up to these events.
    pub(crate) async fn until(mut self, ends: &BTreeMap<String, u64>) {
        let reached =
            |seen: &BTreeMap<String, u64>| ends.iter().all(|(topic, end)| seen[topic] >= *end);
        let wait = self.seen.wait_for(reached);
        let in_time = tokio::time::timeout(PATIENCE, wait).await.is_ok();
        let seen = self.seen.borrow().clone();
        assert!(in_time, "not everything came: seen {seen:?} of {ends:?}");
        assert!(!self.task.is_finished(), "the watcher met what must not be");
        self.task.abort();
        assert_eq!(seen, *ends, "more came than there is");
    }
}

async fn watch_for_ever(
    replicas: Arc<Replicas>,
    seen: watch::Sender<BTreeMap<String, u64>>,
    first: usize,
) {
    for turn in first.. {
        let address = replicas.addresses[turn % replicas.addresses.len()];
        if let Ok((socket, _)) = connect_async(format!("ws://{address}/feed")).await {
            follow(socket, &seen).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads until the connection is gone.
async fn follow(mut socket: Socket, seen: &watch::Sender<BTreeMap<String, u64>>) {
    let watch = json!({"watch": *seen.borrow()}).to_string();
    if socket.send(Message::text(watch)).await.is_err() {
        return;
    }
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Text(text) = message {
            let frame: Value = serde_json::from_str(&text).expect("frames are JSON");
            assert!(frame.get("reset").is_none(), "nothing was pruned: {frame}");
            assert!(
                frame.get("refused").is_none(),
                "these topics are for everybody: {frame}"
            );
            for event in frame["events"].as_array().into_iter().flatten() {
                note(seen, event);
            }
        }
    }
}

fn note(seen: &watch::Sender<BTreeMap<String, u64>>, event: &Value) {
    let topic = event["topic"].as_str().expect("events name their topic");
    let seq = event["seq"].as_u64().expect("events have numbers");
    seen.send_modify(|seen| {
        let last = seen.get_mut(topic).expect("only watched topics come");
        assert_eq!(seq, *last + 1, "{topic}: twice, or one is missing");
        *last = seq;
    });
}
