//! A browser.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use social::model::Event;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// A time longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(3);
/// Receive buffer: a client that does not read must not have much in its socket.
const RECEIVE_BYTES: u32 = 16 * 1024;

pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    /// The last number of each topic, as the server sent it.
    pub(crate) positions: HashMap<String, u64>,
}

/// A message of the server.
#[derive(Debug)]
pub(crate) enum ServerMessage {
    At(HashMap<String, u64>),
    Events(Vec<Event>),
    Reset(HashMap<String, u64>),
    Rejected(HashMap<String, String>),
}

impl Client {
    /// Connects with this query of the address.
    pub(crate) async fn connect_with(address: SocketAddr, query: &str) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .set_recv_buffer_size(RECEIVE_BYTES)
            .expect("it is allowed");
        let stream = socket.connect(address).await.expect("the server listens");
        let upgraded = client_async(format!("ws://{address}/feed{query}"), stream).await;
        let (socket, _) = upgraded.expect("it is a WebSocket");
        Self {
            socket,
            positions: HashMap::new(),
        }
    }

    pub(crate) async fn send(&mut self, message: impl Into<Message>) {
        self.socket
            .send(message.into())
            .await
            .expect("the server reads");
    }

    pub(crate) async fn say(&mut self, command: &Value) {
        self.send(command.to_string()).await;
    }

    /// Watches a topic, and returns the position at which the server begins.
    pub(crate) async fn watch(&mut self, topic: &str, position: Option<u64>) -> u64 {
        self.say(&json!({"watch": {topic: position}})).await;
        match self.next_message().await {
            ServerMessage::At(at) if at.len() == 1 => at[topic],
            other => panic!("not in force: {other:?}"),
        }
    }

    /// Returns the server's next message. Events must go on where the last ones of their topic
    /// ended.
    pub(crate) async fn next_message(&mut self) -> ServerMessage {
        let text = match self.next().await {
            Message::Text(text) => text,
            other => panic!("no text: {other:?}"),
        };
        let received = parse(&text);
        match &received {
            ServerMessage::At(at) | ServerMessage::Reset(at) => self.positions.extend(at.clone()),
            ServerMessage::Events(events) => events.iter().for_each(|event| self.note(event)),
            ServerMessage::Rejected(_) => {}
        }
        received
    }

    pub(crate) async fn events(&mut self) -> Vec<Event> {
        match self.next_message().await {
            ServerMessage::Events(events) => events,
            other => panic!("no events: {other:?}"),
        }
    }

    /// Reads until this event of the topic has come.
    pub(crate) async fn read_to(&mut self, topic: &str, seq: u64) {
        while self.positions[topic] < seq {
            self.events().await;
        }
        assert_eq!(self.positions[topic], seq, "more than there is");
    }

    /// Returns the code with which the server closes the connection now.
    pub(crate) async fn closed(&mut self) -> u16 {
        match self.next().await {
            Message::Close(Some(frame)) => frame.code.into(),
            other => panic!("not closed: {other:?}"),
        }
    }

    async fn next(&mut self) -> Message {
        loop {
            let next = timeout(PATIENCE, self.socket.next())
                .await
                .expect("the server is silent");
            match next
                .expect("there is an end without a close")
                .expect("a message")
            {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    }

    fn note(&mut self, event: &Event) {
        let position = self
            .positions
            .get_mut(&event.topic)
            .expect("nobody asked for this topic");
        assert_eq!(event.seq, *position + 1, "of {}", event.topic);
        *position = event.seq;
    }
}

fn parse(text: &str) -> ServerMessage {
    let mut received: HashMap<String, Value> = serde_json::from_str(text).expect("it is JSON");
    assert_eq!(received.len(), 1, "one thing at a time: {text}");
    let (what, value) = received.drain().next().expect("there is one");
    match &*what {
        "at" => serde_json::from_value(value).map(ServerMessage::At),
        "events" => serde_json::from_value(value).map(ServerMessage::Events),
        "reset" => serde_json::from_value(value).map(ServerMessage::Reset),
        "refused" => serde_json::from_value(value).map(ServerMessage::Rejected),
        _ => panic!("not of the protocol: {text}"),
    }
    .expect("it is of the protocol's shape")
}
