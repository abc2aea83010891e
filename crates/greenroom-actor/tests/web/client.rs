use axum::body::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::rig::Rig;

/// A WebSocket client.
pub(crate) struct Client(pub(crate) WebSocketStream<TcpStream>);

impl Client {
    pub(crate) async fn open(rig: &mut Rig) -> Self {
        let client = Self::ask(rig).await.unwrap();
        rig.hears_start().await;
        client
    }

    /// Asks for a connection, which may be rejected.
    pub(crate) async fn ask(rig: &Rig) -> Result<Self, Error> {
        let stream = TcpStream::connect(rig.address).await.unwrap();
        let url = format!("ws://{}/ws", rig.address);
        let (socket, _) = client_async(url, stream).await?;
        Ok(Self(socket))
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// Returns the next message that is no ping.
    pub(crate) async fn hears(&mut self) -> Message {
        loop {
            let message = self.0.next().await.expect("the connection is there");
            match message.unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    }

    pub(crate) async fn hears_text(&mut self) -> Utf8Bytes {
        match self.hears().await {
            Message::Text(text) => text,
            other => panic!("got {other:?}"),
        }
    }

    /// Returns the code and reason of the close frame, which comes next, and is replied to; then
    /// the connection ends.
    pub(crate) async fn hears_close(mut self) -> (u16, String) {
        let Message::Close(Some(frame)) = self.hears().await else {
            panic!("no close frame with a code");
        };
        assert!(
            self.0.next().await.is_none(),
            "the connection ends in order"
        );
        (frame.code.into(), frame.reason.to_string())
    }
}

/// Returns the number at the beginning of a line.
pub(crate) fn number(line: &str) -> Option<u32> {
    line.split(' ').next()?.parse().ok()
}

/// A client of an event stream.
pub(crate) struct Stream {
    body: Incoming,
    read: String,
}

impl Stream {
    pub(crate) async fn open(rig: &mut Rig) -> Self {
        let response = get(rig).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        rig.hears_start().await;
        Self {
            body: response.into_body(),
            read: String::new(),
        }
    }

    /// Returns the next event or comment, without the empty line behind it. None at the end.
    pub(crate) async fn hears(&mut self) -> Option<Result<String, hyper::Error>> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.read = rest;
                return Some(Ok(event));
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    let data = frame.into_data().unwrap();
                    self.read.push_str(std::str::from_utf8(&data).unwrap());
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Returns the data of the next event.
    pub(crate) async fn hears_data(&mut self) -> String {
        let event = self.hears().await.expect("the stream goes on").unwrap();
        let data = event.strip_prefix("data: ");
        data.unwrap_or_else(|| panic!("got {event}")).to_owned()
    }
}

pub(crate) async fn get(rig: &Rig) -> hyper::Response<Incoming> {
    let client = HttpClient::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let url = format!("http://{}/sse", rig.address);
    client.get(url.parse().unwrap()).await.unwrap()
}
