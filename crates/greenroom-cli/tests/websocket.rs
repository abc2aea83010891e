//! `/ws/echo`, through a WebSocket client.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures_util::{SinkExt, StreamExt};
use greenroom_cli::demo::{self, Demo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

async fn connect() -> WebSocketStream<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, demo::router(Demo::default())).into_future());
    let connection = TcpStream::connect(address).await.unwrap();
    let url = format!("ws://{address}/ws/echo");
    client_async(url, connection).await.unwrap().0
}

#[tokio::test]
async fn text_and_binary_messages_come_back() {
    let mut socket = connect().await;
    let largest = vec![7; 16 * 1024 * 1024];
    for message in [
        Message::text("hällo"),
        Message::text(""),
        Message::binary(largest),
    ] {
        socket.send(message.clone()).await.unwrap();
        assert!(socket.next().await.unwrap().unwrap() == message);
    }
}

#[tokio::test]
async fn ping_gets_a_pong_and_is_not_echoed() {
    let mut socket = connect().await;
    socket.send(Message::Ping("7".into())).await.unwrap();
    socket.send(Message::text("8")).await.unwrap();
    assert_eq!(
        socket.next().await.unwrap().unwrap(),
        Message::Pong("7".into())
    );
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("8"));
}

#[tokio::test]
async fn close_gets_a_close() {
    let mut socket = connect().await;
    socket.close(None).await.unwrap();
    let response = socket.next().await.unwrap().unwrap();
    assert!(response.is_close(), "{response:?}");
    assert!(socket.next().await.is_none());
}

#[tokio::test]
async fn longer_message_ends_the_connection() {
    let mut socket = connect().await;
    let message = Message::binary(vec![7; 16 * 1024 * 1024 + 1]);
    // The server may hang up before it has read everything.
    let _ = socket.send(message).await;
    assert!(!matches!(socket.next().await, Some(Ok(Message::Binary(_)))));
}

#[tokio::test]
async fn rfc6455_7_4_1_a_client_that_breaks_the_protocol_is_told_so() {
    let too_long = (16_u64 * 1024 * 1024 + 1).to_be_bytes();
    let too_long = [&[0x82, 0xff][..], &too_long, &[0; 4]].concat();
    // An unmasked frame, a text that is not UTF-8, and the header of a frame that is too long.
    let faults: [(&[u8], u16); 3] = [
        (&[0x81, 0x02, b'h', b'i'], 1002),
        (&[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007),
        (&too_long, 1009),
    ];
    for (bytes, code) in faults {
        let mut stream = connect().await.into_inner();
        stream.write_all(bytes).await.unwrap();
        let mut head = [0; 4];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head[0], 0x88, "a close frame");
        assert_eq!(u16::from_be_bytes([head[2], head[3]]), code);
    }
}
