//! Clients that leave while their request is under way are not worked for.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom_server::{App, Server};
use http_body::Frame;
use http_body_util::BodyExt;
use rustix::net::sockopt::set_socket_linger;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::{spawn_blocking, spawn_local};
use tokio::time::{Instant, sleep, timeout};

use crate::client::{get, post};
use crate::listening::{ANY_PORT, tcp_address};
use crate::rig::{Dropped, Rig, app, local, settle, streamed, text};

/// A handler that waits for ever, and tells of its being dropped.
fn kept_for_ever(tell: mpsc::UnboundedSender<Instant>) -> impl App {
    app(move |_| {
        let kept = Dropped(tell.clone());
        async {
            let _kept = kept;
            std::future::pending().await
        }
    })
}

/// A server of such a handler, and what it tells.
fn waiting() -> (Rig, mpsc::UnboundedReceiver<Instant>) {
    let (tell, told) = mpsc::unbounded_channel();
    (Rig::start(kept_for_ever(tell)), told)
}

async fn soon(told: &mut mpsc::UnboundedReceiver<Instant>) -> bool {
    timeout(Duration::from_secs(2), told.recv()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn the_handler_of_a_client_that_leaves_is_dropped() {
    local(async {
        let (server, mut told) = waiting();
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert!(!soon(&mut told).await, "dropped while its client waits");
        drop(client);
        assert!(soon(&mut told).await, "kept for a client that left");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn so_is_that_of_a_client_with_a_body_that_was_received() {
    local(async {
        let (server, mut told) = waiting();
        let mut client = server.connect().await;
        client
            .send(post("/", "Content-Length: 4\r\n") + "body")
            .await;
        assert!(!soon(&mut told).await);
        drop(client);
        assert!(soon(&mut told).await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn so_is_that_of_a_client_with_requests_waiting_behind_it() {
    local(async {
        let (server, mut told) = waiting();
        let mut client = server.connect().await;
        client.send(get("/").repeat(50)).await;
        assert!(!soon(&mut told).await);
        drop(client);
        assert!(soon(&mut told).await);
    })
    .await;
}

/// More than the server reads ahead: it does not come to the end of them.
#[tokio::test(start_paused = true)]
async fn so_is_that_of_a_client_with_thousands_of_requests_behind_it() {
    local(async {
        let (server, mut told) = waiting();
        let mut client = server.connect().await;
        client.send(get("/").repeat(3_000)).await;
        assert!(!soon(&mut told).await);
        drop(client);
        assert!(soon(&mut told).await);
    })
    .await;
}

/// A close of TCP, unlike that of a Unix socket, is the end of one side.
#[tokio::test(start_paused = true)]
async fn so_is_that_of_a_client_that_closes_tcp_with_thousands_of_requests_behind_it() {
    local(async {
        let (tell, mut told) = mpsc::unbounded_channel();
        let server = Server::builder().loops(1.try_into().unwrap());
        let bound = server.listen(ANY_PORT).bind().unwrap();
        let address = tcp_address(&bound);
        let serving = spawn_local(bound.serve_local(kept_for_ever(tell)));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let requests = get("/").repeat(3_000);
        stream.write_all(requests.as_bytes()).await.unwrap();
        assert!(!soon(&mut told).await);
        stream.shutdown().await.unwrap();
        assert!(soon(&mut told).await);
        serving.abort();
    })
    .await;
}

/// The end of its side is behind what the server does not read of it.
#[tokio::test(start_paused = true)]
async fn so_is_that_of_a_client_that_closes_tcp_with_a_long_body_that_nobody_reads() {
    local(async {
        let (tell, mut told) = mpsc::unbounded_channel();
        let server = Server::builder().loops(1.try_into().unwrap());
        let bound = server.listen(ANY_PORT).bind().unwrap();
        let address = tcp_address(&bound);
        let serving = spawn_local(bound.serve_local(kept_for_ever(tell)));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = post("/", "Content-Length: 100000\r\n") + &"b".repeat(100_000);
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(!soon(&mut told).await);
        assert!(!soon(&mut told).await);
        drop(stream);
        assert!(soon(&mut told).await || soon(&mut told).await);
        serving.abort();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn so_is_that_of_a_client_whose_body_nobody_reads() {
    local(async {
        let (server, mut told) = waiting();
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 4000\r\n")).await;
        assert!(!soon(&mut told).await);
        drop(client);
        assert!(soon(&mut told).await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn so_is_a_body_that_has_nothing_to_send() {
    local(async {
        let (tell, mut told) = mpsc::unbounded_channel();
        let server = Rig::start(app(move |_| {
            let kept = Dropped(tell.clone());
            let never = stream::pending().map(move |part| {
                let _kept = &kept;
                part
            });
            async { Ok(streamed(never)) }
        }));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert_eq!(client.head().await.0, 200);
        assert!(!soon(&mut told).await);
        drop(client);
        assert!(soon(&mut told).await);
    })
    .await;
}

/// Runs `leave`, and awaits that the handler is dropped while the paused clock stands still, as it
/// does as long as a thread blocks: so no time-out is waited for. Were one needed, the thread would
/// give up first, and the clock would tell.
async fn at_once(told: &mut mpsc::UnboundedReceiver<Instant>, leave: impl AsyncFnOnce()) {
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let still = spawn_blocking(move || gate.recv_timeout(Duration::from_secs(10)));
    let since = Instant::now();
    leave().await;
    told.recv().await.unwrap();
    assert_eq!(since.elapsed(), Duration::ZERO);
    drop(release);
    let _told_to_end = still.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_a_unix_socket_is_noticed_at_once() {
    local(async {
        let (server, mut told) = waiting();
        let mut client = server.connect().await;
        client.send(get("/")).await;
        settle().await;
        at_once(&mut told, async || drop(client)).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ends_its_side_long_after_its_request_is_noticed_at_once() {
    local(async {
        let (server, mut told) = waiting();
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert!(!soon(&mut told).await);
        at_once(&mut told, async || client.end().await).await;
    })
    .await;
}

/// With `half_close` too.
#[tokio::test(start_paused = true)]
async fn a_client_that_resets_its_connection_is_noticed_at_once() {
    local(async {
        for half_close in [false, true] {
            let (tell, mut told) = mpsc::unbounded_channel();
            let bound = Server::builder()
                .loops(1.try_into().unwrap())
                .half_close(half_close)
                .listen(ANY_PORT)
                .bind()
                .unwrap();
            let address = tcp_address(&bound);
            let serving = spawn_local(bound.serve_local(kept_for_ever(tell)));
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(get("/").as_bytes()).await.unwrap();
            assert!(!soon(&mut told).await);
            // Closing it so sends a reset.
            set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
            at_once(&mut told, async || drop(stream)).await;
            serving.abort();
        }
    })
    .await;
}

/// Events that tell when their stream is dropped, one of them there already.
#[tokio::test(start_paused = true)]
async fn the_stream_of_a_client_that_leaves_is_dropped_at_once() {
    local(async {
        let (tell, mut told) = mpsc::unbounded_channel();
        let server = Rig::start(app(move |_| {
            let kept = Dropped(tell.clone());
            let first = stream::once(async { Ok(Frame::data("event".into())) });
            let events = first.chain(stream::pending()).map(move |part| {
                let _kept = &kept;
                part
            });
            async { Ok(streamed(events)) }
        }));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert_eq!(client.head().await.0, 200);
        at_once(&mut told, async || drop(client)).await;

        // One that merely ended its side could have more to read.
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert_eq!(client.head().await.0, 200);
        let since = Instant::now();
        client.end().await;
        told.recv().await.unwrap();
        assert!(since.elapsed() < Duration::from_millis(400));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_pause_goes_to_whoever_ended_its_side() {
    local(async {
        let server = Rig::start(app(|_| async {
            Ok(streamed(stream::iter(0..200).then(|_| async {
                sleep(Duration::from_millis(10)).await;
                Ok(Frame::data("part".into()))
            })))
        }));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        client.end().await;
        assert_eq!(client.response().await.text(), "part".repeat(200));
        assert!(client.is_closed().await);
    })
    .await;
}

fn after_a_second(half_close: bool) -> Rig {
    let handler = app(|_| async {
        sleep(Duration::from_secs(1)).await;
        Ok(text("still there?"))
    });
    Rig::with(handler, |builder| builder.half_close(half_close))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ended_its_side_gets_its_response_if_the_server_is_told_to() {
    local(async {
        let server = after_a_second(true);
        let mut client = server.connect().await;
        client.send(get("/") + &get("/")).await;
        client.end().await;
        assert_eq!(client.response().await.text(), "still there?");
        assert_eq!(client.response().await.text(), "still there?");
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ended_its_side_counts_as_gone_otherwise() {
    local(async {
        let server = after_a_second(false);
        let mut client = server.connect().await;
        client.send(get("/")).await;
        client.end().await;
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_ready_at_once_goes_to_whoever_ended_its_side() {
    local(async {
        let server = Rig::start(app(|_| async { Ok(text("at once")) }));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        client.end().await;
        assert_eq!(client.response().await.text(), "at once");
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn so_does_that_to_whoever_ended_its_side_behind_a_body_that_came_slowly() {
    local(async {
        let server = Rig::start(app(|request| async {
            let mut body = request.into_body();
            body.frame().await.unwrap().unwrap();
            sleep(Duration::from_secs(3)).await;
            let rest = body.collect().await.unwrap().to_bytes();
            Ok(text(rest))
        }));
        // What is more than fits into the server stays in the system.
        for bytes in [4, 100_000] {
            let rest = "b".repeat(bytes);
            let mut client = server.connect().await;
            let length = 5 + bytes;
            client
                .send(format!(
                    "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\nfirst"
                ))
                .await;
            settle().await;
            sleep(Duration::from_millis(2_800)).await;
            client.send(rest.clone()).await;
            client.end().await;
            assert_eq!(client.response().await.text(), rest);
        }
    })
    .await;
}

/// It has not come to the end of what the client sent, and looks whether that has left.
#[tokio::test(start_paused = true)]
async fn so_do_those_to_thousands_of_requests() {
    local(async {
        let server = Rig::start(app(|_| async {
            sleep(Duration::from_millis(20)).await;
            sleep(Duration::from_millis(20)).await;
            Ok(streamed(stream::iter(0..3).then(|_| async {
                sleep(Duration::from_millis(10)).await;
                Ok(Frame::data("part".into()))
            })))
        }));
        let mut client = server.connect().await;
        client.send(get("/").repeat(3_000)).await;
        settle().await;
        client.end().await;
        for _ in 0..10 {
            assert_eq!(client.response().await.text(), "part".repeat(3));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn so_does_one_that_is_ready_soon() {
    local(async {
        let server = Rig::start(app(|_| async {
            sleep(Duration::from_millis(200)).await;
            Ok(text("soon"))
        }));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        client.end().await;
        assert_eq!(client.response().await.text(), "soon");
        assert!(client.is_closed().await);
    })
    .await;
}
