//! axum's own WebSocket extractor, frame by frame.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::any;
use http::Request;
use hyper::client::conn::http2;
use hyper::ext::Protocol;
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::rig::{Rig, exchange, within};

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Echoes messages, and sends three in a row when asked to `count`.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let texts = match message {
            Message::Text(text) if text == "count" => vec!["1".into(), "2".into(), "3".into()],
            Message::Text(text) => vec![text],
            _ => continue,
        };
        for text in texts {
            if socket.send(Message::Text(text)).await.is_err() {
                return;
            }
        }
    }
}

fn app() -> Router {
    let upgrade = |upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) };
    Router::new().route("/ws", any(upgrade))
}

/// Sends messages, and receives none.
async fn push(mut socket: WebSocket) {
    while socket.send(Message::Text("tick".into())).await.is_ok() {
        sleep(Duration::from_millis(10)).await;
    }
}

/// A client's text frame of up to 125 bytes (RFC 6455, 5.2), masked by zeros.
fn frame(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap();
    let mut frame = vec![0x81, 0x80 | length, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    frame
}

struct Socket<S = TcpStream>(S);

impl Socket {
    /// Asks for an upgrade, with `early` in the same segment.
    async fn open(server: &Rig, early: &[u8]) -> Self {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = [UPGRADE.as_bytes(), early].concat();
        stream.write_all(&request).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        assert!(
            head.starts_with("http/1.1 101 switching protocols\r\n"),
            "{head}"
        );
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"));
        Self(stream)
    }
}

impl Socket<TokioIo<Upgraded>> {
    /// Asks for a stream of an HTTP/2 connection (RFC 8441, 5).
    async fn open_http2(server: &Rig) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let executor = TokioExecutor::new();
        let (mut client, connection) = http2::handshake(executor, TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        // The server's settings have come with its first response: they allow an extended CONNECT.
        let before = Request::get(server.url("/nowhere")).body(Body::empty());
        let response = client.send_request(before.unwrap()).await.unwrap();
        assert_eq!(response.status(), 404);
        let request = Request::connect(server.url("/ws"))
            .extension(Protocol::from_static("websocket"))
            .header("sec-websocket-version", "13")
            .body(Body::empty());
        let response = client.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        Self(TokioIo::new(hyper::upgrade::on(response).await.unwrap()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// The next frame: its first byte, and its payload of up to 125 bytes.
    async fn receive(&mut self) -> (u8, Vec<u8>) {
        let first = self.0.read_u8().await.unwrap();
        let length = self.0.read_u8().await.unwrap();
        assert!(length < 126, "a frame of ours is not masked, and short");
        let mut payload = vec![0; length.into()];
        self.0.read_exact(&mut payload).await.unwrap();
        (first, payload)
    }
}

/// Asserts that messages come back, and that the socket's end leaves nothing.
async fn assert_echoed<S: AsyncRead + AsyncWrite + Unpin>(server: Rig, mut socket: Socket<S>) {
    for text in ["one", "two", ""] {
        socket.send(&frame(text)).await;
        assert_eq!(socket.receive().await, (0x81, text.as_bytes().to_vec()));
    }
    socket.send(&[0x88, 0x80, 0, 0, 0, 0]).await;
    assert_eq!(socket.receive().await.0, 0x88);
    drop(socket);
    assert_eq!(server.end().await.aborted, []);
}

#[tokio::test]
async fn messages_are_echoed() {
    within(async {
        let server = Rig::start(app());
        let socket = Socket::open(&server, b"").await;
        assert_echoed(server, socket).await;
    })
    .await;
}

#[tokio::test]
async fn rfc8441_messages_are_echoed_over_http_2() {
    within(async {
        let server = Rig::start(app());
        let socket = Socket::open_http2(&server).await;
        assert_echoed(server, socket).await;
    })
    .await;
}

#[tokio::test]
async fn frames_that_came_with_the_request_are_not_lost() {
    within(async {
        let server = Rig::start(app());
        let early = [frame("early"), frame("bird")].concat();
        let mut socket = Socket::open(&server, &early).await;
        assert_eq!(socket.receive().await, (0x81, b"early".to_vec()));
        assert_eq!(socket.receive().await, (0x81, b"bird".to_vec()));
        drop(socket);
        assert_eq!(server.end().await.aborted, []);
    })
    .await;
}

#[tokio::test]
async fn an_upgrade_behind_other_requests_works_too() {
    within(async {
        let server = Rig::start(app());
        let before = "GET /nowhere HTTP/1.1\r\nHost: test\r\n\r\n";
        let request = format!("{before}{before}{UPGRADE}");
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.write_all(&frame("hi")).await.unwrap();
        let mut all = Vec::new();
        while !all.ends_with(&[0x81, 2, b'h', b'i']) {
            all.push(stream.read_u8().await.unwrap());
        }
        let text = String::from_utf8_lossy(&all);
        assert_eq!(text.matches("HTTP/1.1 404").count(), 2, "{text}");
        assert_eq!(text.matches("HTTP/1.1 101").count(), 1, "{text}");
        drop(stream);
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_upgrade_that_nobody_wants_is_an_ordinary_request() {
    within(async {
        let server = Rig::start(app());
        let request = "GET /nowhere HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\n\
            Upgrade: unheard-of\r\n\r\n";
        let response = exchange(server.address, request.as_bytes()).await;
        assert!(response.starts_with("HTTP/1.1 404"), "{response}");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_drain_sends_a_close_frame_and_waits_for_its_reply() {
    within(async {
        let server = Rig::start(app());
        let mut quiet = Socket::open(&server, b"").await;
        let mut used = Socket::open(&server, b"").await;
        used.send(&frame("count")).await;
        for payload in [b"1", b"2", b"3"] {
            assert_eq!(used.receive().await.1, payload);
        }
        server.handle.drain();
        for socket in [&mut quiet, &mut used] {
            // 1001, "going away" (RFC 6455, 7.4.1).
            assert_eq!(socket.receive().await, (0x88, vec![0x03, 0xe9]));
            socket.send(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]).await;
        }
        let mut rest = Vec::new();
        quiet.0.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"");
        assert_eq!(server.end().await.aborted, []);
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_receives_nothing_ends_at_a_drain_when_its_client_has_left() {
    within(async {
        let upgrade = |upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(push) };
        let server = Rig::start(Router::new().route("/ws", any(upgrade)));
        let mut socket = Socket::open(&server, b"").await;
        assert_eq!(socket.receive().await, (0x81, b"tick".to_vec()));
        server.handle.drain();
        let mut frame = socket.receive().await;
        while frame.0 == 0x81 {
            frame = socket.receive().await;
        }
        assert_eq!(frame, (0x88, vec![0x03, 0xe9]));
        socket.send(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]).await;
        drop(socket);
        assert_eq!(server.end().await.aborted, []);
    })
    .await;
}
