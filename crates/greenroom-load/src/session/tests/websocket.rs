//! WebSocket.

use futures_util::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use super::server::Server;
use super::*;

fn websocket() -> StreamPlan {
    plan(Protocol::WebSocket)
}

/// Responds to each message with itself, and pings before it does.
async fn echo(stream: TcpStream) {
    let mut socket = accept_async(stream).await.expect("an opening");
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() || message.is_binary() {
            let ping = Message::Ping("there?".into());
            let sent = async {
                socket.send(ping).await?;
                socket.send(message).await
            };
            if sent.await.is_err() {
                return;
            }
        }
    }
}

/// Closes instead of responding.
async fn close(stream: TcpStream) {
    let mut socket = accept_async(stream).await.expect("an opening");
    let _ = socket.next().await;
    let _ = socket.close(None).await;
    while let Some(Ok(_)) = socket.next().await {}
}

#[test]
fn messages_go_back_and_forth_on_one_connection() {
    let server = Server::start(echo);
    let outcome = run(&with_requests(websocket(), 10), server.address);
    assert_eq!((outcome.responses(), outcome.failures()), (10, vec![]));
    let counts = outcome.tally.counts;
    assert_eq!((counts.connections, counts.reused), (1, 9));
    assert_eq!((counts.sent_bytes, counts.body_bytes), (90, 90));
    assert_eq!(outcome.tally.statuses().collect::<Vec<_>>(), [(200, 10)]);
    let first = outcome.first.expect("there was one");
    assert_eq!((first.head, first.body), (vec![], b"greenroom".to_vec()));
}

#[test]
fn each_message_has_its_connection_without_keep_alive() {
    let server = Server::start(echo);
    let mut plan = StreamPlan {
        keep_alive: false,
        connections: 2,
        ..with_requests(websocket(), 6)
    };
    plan.request.body = vec![0xff; 70_000];
    let counts = run(&plan, server.address).tally.counts;
    assert_eq!((counts.connections, counts.body_bytes), (6, 420_000));
}

#[test]
fn an_open_loop_sends_each_message() {
    let server = Server::start(echo);
    let plan = StreamPlan {
        connections: 100,
        ..with_rate_and_patience(websocket(), 500.0, Duration::from_millis(200))
    };
    let outcome = run(&plan, server.address);
    assert_eq!((outcome.responses(), outcome.failures()), (100, vec![]));
    assert_eq!(outcome.tally.counts.due, 100);
}

#[test]
fn a_server_that_closes_instead_of_responding_is_reported() {
    let server = Server::start(close);
    let outcome = run(&with_requests(websocket(), 4), server.address);
    assert_eq!(outcome.failures(), [(FailureKind::ClosedEarly, 4)]);
    assert_eq!(outcome.tally.counts.connections, 4);
}

#[test]
fn an_opening_that_is_refused_is_reported() {
    let server = Server::saying(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let outcome = run(&with_requests(websocket(), 100), server.address);
    assert_eq!(outcome.failures(), [(FailureKind::Handshake, 10)]);
    let detail = outcome.tally.failures.detail(FailureKind::Handshake);
    assert!(
        detail.is_some_and(|text| text.contains("403")),
        "{detail:?}"
    );
    assert!(outcome.ending.gave_up);
}

#[test]
fn what_is_no_message_is_reported() {
    let server = Server::start(|stream| async {
        let mut socket = accept_async(stream).await.expect("an opening");
        let _ = socket.next().await;
        // A frame of a kind that does not exist.
        let _ = socket.get_mut().write_all(b"\x83\x00").await;
        while let Some(Ok(_)) = socket.next().await {}
    });
    let outcome = run(&with_requests(websocket(), 2), server.address);
    assert_eq!(outcome.failures(), [(FailureKind::Malformed, 2)]);
}

#[test]
fn a_message_without_a_reply_times_out() {
    let server = Server::start(|stream| async {
        let mut socket = accept_async(stream).await.expect("an opening");
        while let Some(Ok(_)) = socket.next().await {}
    });
    let plan = StreamPlan {
        // It holds for the opening, too.
        timeout: Duration::from_secs(1),
        ..with_requests(websocket(), 2)
    };
    let outcome = run(&plan, server.address);
    assert_eq!(outcome.failures(), [(FailureKind::Timeout, 2)]);
    // A late response would be taken for the next message's.
    assert_eq!(outcome.tally.counts.connections, 2);
}
