//! Clients that reconnect at once when their connection breaks, from their last position.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message as WebSocketMessage;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::topics::{Message, Positions, watch};

/// Pause before another attempt to connect.
const REST: Duration = Duration::from_millis(50);
/// Interval of checking for the end.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time to establish a connection, and to get a response.
const OPEN_MAX: Duration = Duration::from_secs(2);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Clients at work.
#[derive(Debug)]
pub(crate) struct Returning {
    clients: JoinSet<anyhow::Result<Returned>>,
    is_over: Arc<AtomicBool>,
}

/// The record of a client.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    /// The times at which its connection broke, and at which all its watches were in force again.
    pub(crate) breaks: Vec<(Instant, Instant)>,
    /// Events that came twice, or after one that did not come, and positions that the server had
    /// forgotten.
    pub(crate) wrong: u64,
    /// The last event of each topic.
    pub(crate) last: Positions,
}

impl Returning {
    /// Connects so many clients, each of which watches all topics; returns when all watches are in
    /// force.
    pub(crate) async fn gather(url: &str, count: usize, topics: &[String]) -> anyhow::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for _ in 0..count {
            let mut client = Client::new(url, topics);
            let socket = client.open().await?;
            clients.spawn(client.stay(socket, Arc::clone(&is_over)));
        }
        Ok(Self { clients, is_over })
    }

    /// Ends all clients; returns their records.
    pub(crate) async fn end(mut self) -> anyhow::Result<Vec<Returned>> {
        self.is_over.store(true, Ordering::Release);
        let mut all = Vec::new();
        while let Some(ended) = self.clients.join_next().await {
            all.push(ended.context("a client")??);
        }
        Ok(all)
    }
}

/// Returns the last event of each topic now.
pub(crate) async fn ends(url: &str, topics: &[String]) -> anyhow::Result<Positions> {
    let mut client = Client::new(url, topics);
    client.open().await?;
    Ok(client.known())
}

struct Client {
    url: String,
    positions: BTreeMap<String, Option<u64>>,
    record: Returned,
}

impl Client {
    fn new(url: &str, topics: &[String]) -> Self {
        Self {
            url: url.to_owned(),
            positions: topics.iter().map(|topic| (topic.clone(), None)).collect(),
            record: Returned::default(),
        }
    }

    fn known(&self) -> Positions {
        let all = self.positions.iter();
        all.filter_map(|(topic, position)| Some((topic.clone(), (*position)?)))
            .collect()
    }

    async fn stay(
        mut self,
        mut socket: Socket,
        is_over: Arc<AtomicBool>,
    ) -> anyhow::Result<Returned> {
        while !is_over.load(Ordering::Acquire) {
            match timeout(LOOK, socket.next()).await {
                Err(_) => {}
                Ok(Some(Ok(message))) => self.take(&message).map(drop)?,
                Ok(None | Some(Err(_))) => socket = self.come_back(&is_over).await?,
            }
        }
        self.record.last = self.known();
        Ok(self.record)
    }

    async fn come_back(&mut self, is_over: &AtomicBool) -> anyhow::Result<Socket> {
        let broken = Instant::now();
        loop {
            match self.open().await {
                Ok(socket) => {
                    self.record.breaks.push((broken, Instant::now()));
                    return Ok(socket);
                }
                Err(error) if is_over.load(Ordering::Acquire) => return Err(error),
                Err(_) => sleep(REST).await,
            }
        }
    }

    /// Connects, and watches from its last position; returns when that is in force.
    async fn open(&mut self) -> anyhow::Result<Socket> {
        timeout(OPEN_MAX, self.watch())
            .await
            .context("no connection, or no response, in time")?
    }

    async fn watch(&mut self) -> anyhow::Result<Socket> {
        let (mut socket, _) = connect_async(&self.url).await.context("no connection")?;
        let positions = self.positions.iter();
        let command = watch(positions.map(|(topic, position)| (topic.as_str(), *position)));
        socket.send(WebSocketMessage::text(command)).await?;
        let mut in_force = 0;
        while in_force < self.positions.len() {
            match socket.next().await {
                Some(message) => in_force += self.take(&message?)?,
                None => bail!("the connection ended"),
            }
        }
        Ok(socket)
    }

    /// Returns the number of watches that a message puts in force.
    fn take(&mut self, message: &WebSocketMessage) -> anyhow::Result<usize> {
        let WebSocketMessage::Text(text) = message else {
            return Ok(0);
        };
        let message: Message<'_> = serde_json::from_str(text).context("a message")?;
        for event in &message.events {
            let position = self.positions.get_mut(event.topic.as_ref());
            let position = position.context("a topic that is not watched")?;
            if position.is_some_and(|position| event.seq != position + 1) {
                self.record.wrong += 1;
            }
            *position = Some(event.seq);
        }
        self.record.wrong += message.reset.len() as u64;
        let in_force = message.at.len() + message.reset.len();
        for (topic, seq) in message.at.into_iter().chain(message.reset) {
            // The known position stays: the next event is compared with it.
            self.positions.entry(topic).or_default().get_or_insert(seq);
        }
        Ok(in_force)
    }
}
