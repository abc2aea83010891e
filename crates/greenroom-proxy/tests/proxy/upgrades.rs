//! Connections that leave HTTP.

use std::time::Duration;

use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{Message as AxumMessage, WebSocket};
use axum::routing::any;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use greenroom_proxy::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest};

use crate::rig::{Rig, read_to, rest, status_of, to, until, within};
use crate::upstreams::{Scripted, head, serve};

async fn chat(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        match message {
            AxumMessage::Text(text) if text.as_str() == "bye" => return,
            AxumMessage::Close(_) => return,
            message => socket.send(message).await.unwrap(),
        }
    }
}

pub(crate) fn chatting() -> Router {
    let open = |upgrade: WebSocketUpgrade| async { upgrade.protocols(["chat"]).on_upgrade(chat) };
    Router::new().route("/chat", any(open))
}

#[tokio::test]
async fn websockets_pass_in_both_directions_and_end() {
    within(async {
        let rig = Rig::before([serve(chatting()).await]);
        for ends_by_client in [true, false] {
            let url = format!("ws://{}/chat?a=b", rig.address);
            let mut request = url.into_client_request().unwrap();
            let chat = http::HeaderValue::from_static("chat");
            request.headers_mut().insert("sec-websocket-protocol", chat);
            let stream = rig.connect().await;
            let (mut socket, response) = tokio_tungstenite::client_async(request, stream)
                .await
                .unwrap();
            assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
            for message in ["hello".to_owned(), "x".repeat(300_000)] {
                socket.send(Message::text(message.clone())).await.unwrap();
                let echoed = socket.next().await.unwrap().unwrap();
                assert_eq!(echoed, Message::text(message));
            }
            assert_eq!(rig.upstream(0).in_flight, 1);
            if ends_by_client {
                socket.close(None).await.unwrap();
            } else {
                socket.send(Message::text("bye")).await.unwrap();
            }
            while let Some(Ok(_)) = socket.next().await {}
            drop(socket);
            until(|| rig.upstream(0).in_flight == 0).await;
        }
        rig.end().await;
    })
    .await;
}

const ASKED: &str =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: unheard-of\r\n\r\n";
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: unheard-of\r\n\r\n";

#[tokio::test]
async fn any_protocol_passes_and_bytes_behind_the_head_are_kept() {
    within(async {
        let (left, mut ended) = mpsc::unbounded_channel();
        let upstream = Scripted::start(move |_, mut stream| {
            let left = left.clone();
            async move {
                let asked = head(&mut stream).await.unwrap();
                assert!(asked.contains("upgrade: unheard-of\r\n"), "{asked}");
                assert!(asked.contains("connection: upgrade\r\n"), "{asked}");
                stream
                    .write_all(format!("{SWITCHED}early").as_bytes())
                    .await
                    .unwrap();
                read_to(&mut stream, "ping").await;
                stream.write_all(b"pong").await.unwrap();
                assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
                left.send(()).unwrap();
            }
        })
        .await;
        let rig = Rig::before([upstream.address]);
        let mut stream = rig.connect().await;
        stream.write_all(ASKED.as_bytes()).await.unwrap();
        let response = read_to(&mut stream, "early").await.to_ascii_lowercase();
        assert_eq!(status_of(&response), 101);
        assert!(
            response.contains("\r\nupgrade: unheard-of\r\n"),
            "{response}"
        );
        stream.write_all(b"ping").await.unwrap();
        read_to(&mut stream, "pong").await;
        drop(stream);
        ended.recv().await.unwrap();
        until(|| rig.upstream(0).in_flight == 0).await;
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_upstream_may_refuse_to_switch() {
    within(async {
        let refused = "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno";
        let upstream = Scripted::responds(refused).await;
        let rig = Rig::before([upstream.address]);
        let response = rig.exchange(ASKED).await;
        assert_eq!(status_of(&response), 426);
        assert!(response.ends_with("\r\n\r\nno"), "{response}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn http_within_a_tunnel_is_not_asked_for() {
    within(async {
        let rig = Rig::before([crate::upstreams::start_echo().await]);
        for protocol in ["h2c", "unheard-of, H2C", "HTTP/2.0", "TLS/1.0"] {
            let upgrade = format!("Upgrade: {protocol}\r\nHTTP2-Settings: AAMAAABk");
            let asked = ASKED.replace("Upgrade: unheard-of", &upgrade);
            let asked = asked.replace("n: Upgrade", "n: close, Upgrade, HTTP2-Settings");
            let told = rig.exchange(asked).await;
            assert_eq!(status_of(&told), 200);
            assert!(
                !told.contains("upgrade:") && !told.contains("http2-"),
                "{told}"
            );
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_idle_tunnel_is_closed() {
    within(async {
        let upstream = Scripted::start(|_, mut stream| async move {
            head(&mut stream).await.unwrap();
            stream.write_all(SWITCHED.as_bytes()).await.unwrap();
            let _closed = stream.read_to_end(&mut Vec::new()).await;
        })
        .await;
        let settings = Settings {
            tunnel_idle_timeout: Duration::from_millis(100),
            ..to([upstream.address])
        };
        let rig = Rig::with(settings);
        let mut stream = rig.connect().await;
        stream.write_all(ASKED.as_bytes()).await.unwrap();
        assert_eq!(status_of(&rest(&mut stream).await), 101);
        until(|| rig.upstream(0).in_flight == 0).await;
        rig.end().await;
    })
    .await;
}

/// Asks for a tunnel of this protocol by HTTP/2.
async fn extended_connect(
    rig: &Rig,
    protocol: &'static str,
) -> (http::Response<h2::RecvStream>, h2::SendStream<Bytes>) {
    let (client, connection) = h2::client::handshake(rig.connect().await).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    until(|| client.is_extended_connect_protocol_enabled()).await;
    let mut request = http::Request::builder()
        .method("CONNECT")
        .uri(format!("http://{}/chat", rig.address))
        .header("sec-websocket-version", "13")
        .header("http2-settings", "AAMAAABk")
        .body(())
        .unwrap();
    let protocol = h2::ext::Protocol::from_static(protocol);
    request.extensions_mut().insert(protocol);
    let (response, send) = client.send_request(request, false).unwrap();
    (response.await.unwrap(), send)
}

#[tokio::test]
async fn http_within_a_tunnel_of_http2_is_not_asked_for_either() {
    within(async {
        let rig = Rig::before([crate::upstreams::start_echo().await]);
        for protocol in ["h2c", "websocket, H2C", "HTTP/2.0"] {
            let (response, _send) = extended_connect(&rig, protocol).await;
            assert_eq!(response.status(), 501, "{protocol}");
        }
        assert_eq!(rig.upstream(0).requests, 0);
        rig.end().await;
    })
    .await;
}

/// Any successful response would open the tunnel (RFC 8441, 5).
#[tokio::test]
async fn a_page_in_place_of_a_websocket_over_http2_is_502() {
    within(async {
        let upstream = Scripted::responds("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlogin");
        let rig = Rig::before([upstream.await.address]);
        let (response, _send) = extended_connect(&rig, "websocket").await;
        assert_eq!(response.status(), 502);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn rfc8441_a_websocket_over_http2_becomes_one_of_http1() {
    within(async {
        let rig = Rig::before([serve(chatting()).await]);
        let (response, mut send) = extended_connect(&rig, "websocket").await;
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("sec-websocket-accept"));
        // A text of two bytes, masked by zeros (RFC 6455, 5.2).
        let hello = Bytes::from_static(&[0x81, 0x82, 0, 0, 0, 0, b'h', b'i']);
        send.send_data(hello, false).unwrap();
        let echoed = response.into_body().data().await.unwrap().unwrap();
        assert_eq!(&echoed[..], [0x81, 2, b'h', b'i']);
        drop(send);
        rig.end().await;
    })
    .await;
}
