//! Connections that were handed over because of an `Upgrade`: the same limits as elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use greenroom_server::{App, Limits, RequestBody};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use tokio::task::{spawn_local, yield_now};
use tokio::time::{Instant, sleep};

use crate::acceptors;
use crate::client::{Client, get, post};
use crate::over;
use crate::rig::{
    Body, Dropped, Reply, Rig, app, assert_elapsed, endless, local, measure, settle, streamed, text,
};
use crate::timeouts::assert_disconnected_when_it_stops_reading;
use crate::timeouts_response::assert_disconnected_at_half_the_rate;
use crate::torrents::{Http1, Torrent};

const SECOND: Duration = Duration::from_secs(1);
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: unheard-of\r\n";

fn upgrading(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\n{UPGRADE}\r\n")
}

async fn handler(request: Request<RequestBody>) -> Reply {
    match request.uri().path() {
        "/endless" => Ok(streamed(endless(Dropped(mpsc::unbounded_channel().0)))),
        "/measure" => measure(request).await,
        "/panic" => panic!("in the handler"),
        "/never" => std::future::pending().await,
        path => Ok(text(path.to_owned())),
    }
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_is_not_taken_gets_a_response_and_the_connection_ends() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/1") + &upgrading("/2") + &get("/3")).await;
        assert_eq!(client.response().await.text(), "/1");
        let response = client.response().await;
        assert_eq!((response.text(), response.closes()), ("/2", true));
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn its_body_is_held_to_the_same_limits() {
    local(async {
        let limits = Limits {
            body_bytes_max: 2_097_152,
            ..Limits::default()
        };
        let server = Rig::with(app(handler), |builder| builder.limits(limits));
        let mut client = server.connect().await;
        let fields = format!("{UPGRADE}Content-Length: 2097153\r\n");
        client.send(post("/measure", &fields)).await;
        assert_eq!(client.response().await.status, 413);
        let mut client = server.connect().await;
        let fields = format!("{UPGRADE}Content-Length: 5\r\n");
        client.send(post("/measure", &fields)).await;
        let since = Instant::now();
        assert_eq!(client.response().await.status, 408);
        assert_elapsed(since, 10 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_is_500() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(upgrading("/panic")).await;
        assert_eq!(client.response().await.status, 500);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_outlasts_the_drain_is_aborted_and_named() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(upgrading("/never")).await;
        sleep(SECOND).await;
        server.handle.drain();
        let since = Instant::now();
        assert!(client.is_closed().await);
        assert_elapsed(since, 30 * SECOND);
        let cut = server.ended().await.aborted;
        let routes: Vec<_> = cut.iter().map(|cut| cut.route.as_str()).collect();
        assert_eq!(routes, ["GET /never"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_asks_is_told_of_the_drain() {
    local(async {
        let server = Rig::start(app(crate::drain::handler));
        let mut client = server.connect().await;
        client.send(upgrading("/told")).await;
        sleep(SECOND).await;
        server.handle.drain();
        assert_eq!(client.response().await.text(), "told");
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected_after_30_s() {
    assert_disconnected_when_it_stops_reading(upgrading("/"), 5).await;
}

/// The system says that there is room only when most of what it holds was taken, at this pace after
/// 80 s.
#[tokio::test(start_paused = true)]
async fn a_client_that_reads_two_kilobytes_a_second_is_not_disconnected() {
    local(async {
        let (tell, mut told) = mpsc::unbounded_channel();
        let server = Rig::start(app(move |_| {
            let kept = Dropped(tell.clone());
            async { Ok(streamed(endless(kept))) }
        }));
        let mut client = over::connect(&server.path).await;
        client.write_all(upgrading("/").as_bytes()).await.unwrap();
        client.flush().await.unwrap();
        let mut some = vec![0; 40_000];
        for _ in 0..50 {
            sleep(20 * SECOND).await;
            assert!(told.try_recv().is_err(), "aborted while it was reading");
            client.read_exact(&mut some).await.unwrap();
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_that_takes_half_the_rate_is() {
    assert_disconnected_at_half_the_rate(upgrading("/")).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_taken_of_its_response_counts_as_memory() {
    local(async {
        let limits = Limits {
            memory_max: 32 * 1_024,
            ..Limits::default()
        };
        let server = Rig::with(app(handler), |builder| builder.limits(limits));
        let mut client = server.connect().await;
        client.send(upgrading("/endless")).await;
        sleep(SECOND).await;
        assert_eq!(server.connect().await.get("/").await.status, 503);
        drop(client);
        sleep(2 * SECOND).await;
        assert_eq!(server.connect().await.get("/").await.status, 200);
    })
    .await;
}

/// A response that switches to this protocol.
fn switching(protocol: &'static str) -> Response<Body> {
    let mut response = text("");
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let fields = response.headers_mut();
    fields.insert("connection", HeaderValue::from_static("upgrade"));
    fields.insert("upgrade", HeaderValue::from_static(protocol));
    response
}

/// An application that has each request to upgrade, and each `CONNECT`, become a tunnel that is
/// served so, and responds to `/short`.
fn tunnels<F, Serving>(serve: F) -> impl App
where
    F: Fn(TokioIo<Upgraded>) -> Serving + Clone + Send + 'static,
    Serving: Future<Output = ()> + 'static,
{
    app(move |request: Request<RequestBody>| {
        let serve = serve.clone();
        async move {
            if request.uri().path() == "/short" {
                return Ok(text("short"));
            }
            let response = match *request.method() {
                Method::CONNECT => text(""),
                _ => switching("websocket"),
            };
            spawn_local(async move {
                let upgraded = hyper::upgrade::on(request).await.expect("it is taken");
                serve(TokioIo::new(upgraded)).await;
            });
            Ok(response)
        }
    })
}

/// Opens a tunnel by this request.
async fn opened(server: &Rig, request: impl AsRef<[u8]>) -> Client {
    let mut client = server.connect().await;
    client.send(request).await;
    let (status, head) = client.head().await;
    assert!([101, 200].contains(&status), "{head}");
    client
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_has_no_rate_to_keep() {
    local(async {
        let limits = Limits {
            response_rate_min: 50_000,
            ..Limits::default()
        };
        let connect = "CONNECT test:7 HTTP/1.1\r\nHost: test:7\r\n\r\n".to_owned();
        for request in [upgrading("/"), connect] {
            let (tell, mut told) = mpsc::unbounded_channel();
            let server = tunnels(move |mut io| {
                let kept = Dropped(tell.clone());
                async move {
                    let _kept = kept;
                    let piece = vec![0; 60_000];
                    while io.write_all(&piece).await.is_ok() {}
                }
            });
            let limits = limits.clone();
            let server = Rig::with(server, |builder| builder.limits(limits));
            let mut client = opened(&server, request).await;
            for _ in 0..20 {
                sleep(20 * SECOND).await;
                assert!(told.try_recv().is_err(), "aborted while it was reading");
                client.read_exactly(500_000).await;
            }
        }
    })
    .await;
}

/// The most that the application below moves: some hundred times what its loop may let it move
/// before a short request is served.
const FLOOD_BYTES: usize = 64 * 1_024 * 1_024;

/// Reads from its client, or writes to it, in small pieces and without end, as no application
/// should.
async fn flood(mut io: TokioIo<Upgraded>, is_writing: bool, moved: Arc<AtomicUsize>) {
    let mut piece = [0; 512];
    while moved.load(Ordering::Relaxed) < FLOOD_BYTES {
        let now = if is_writing {
            io.write(&piece).await
        } else {
            io.read(&mut piece).await
        };
        moved.fetch_add(now.expect("its client is always ready"), Ordering::Relaxed);
    }
}

/// Serves a short request beside an upgraded connection whose client is always ready.
async fn a_short_request_is_served_beside_a_flood(is_writing: bool) {
    let moved = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&moved);
    let server = tunnels(move |io| flood(io, is_writing, Arc::clone(&counted)));
    let server = acceptors::Rig::with(server, Limits::default());
    let client = Http1 {
        head: upgrading("/").into(),
        uploads: !is_writing,
    };
    server.give(Torrent::new(client, &Arc::default()));
    while moved.load(Ordering::Relaxed) == 0 {
        yield_now().await;
    }
    assert_eq!(server.connect().get("/short").await.text(), "short");
    let moved = moved.load(Ordering::Relaxed);
    assert!(moved < FLOOD_BYTES, "{moved} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_without_end_does_not_hold_up_its_loop() {
    local(a_short_request_is_served_beside_a_flood(false)).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_takes_without_end_does_not_either() {
    local(a_short_request_is_served_beside_a_flood(true)).await;
}

const WEBSOCKET: &str =
    "GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
/// A server's text frame (RFC 6455, 5.2).
const MESSAGE: [u8; 4] = [0x81, 2, b'h', b'i'];
/// A server's close frame: 1001, "going away".
const CLOSE: [u8; 4] = [0x88, 2, 0x03, 0xe9];
/// A client's ping, and its reply to a close frame, both empty and masked by zeros.
const PING: [u8; 6] = [0x89, 0x80, 0, 0, 0, 0];
const REPLY: [u8; 6] = [0x88, 0x80, 0, 0, 0, 0];

/// Sends a message each second, and never reads.
async fn push(mut io: TokioIo<Upgraded>) {
    while io.write_all(&MESSAGE).await.is_ok() {
        sleep(SECOND).await;
    }
}

/// Drains a server whose application only pushes, and reads up to the close frame: the client, and
/// since when the server drains.
async fn drained_while_pushing(server: &Rig) -> (Client, Instant) {
    let mut client = opened(server, WEBSOCKET).await;
    assert_eq!(client.read_exactly(4).await, MESSAGE);
    server.handle.drain();
    let since = Instant::now();
    let mut frame = client.read_exactly(4).await;
    while frame == MESSAGE {
        frame = client.read_exactly(4).await;
    }
    assert_eq!(frame, CLOSE);
    (client, since)
}

#[tokio::test(start_paused = true)]
async fn a_websocket_that_only_writes_ends_when_the_reply_to_its_close_frame_was_due() {
    local(async {
        let server = Rig::start(tunnels(push));
        let (mut client, since) = drained_while_pushing(&server).await;
        client.send(REPLY).await;
        assert!(client.is_closed().await);
        // Its next messages are up to a second behind the drain, and behind the end of the 5 s.
        let elapsed = since.elapsed();
        assert!((5 * SECOND..8 * SECOND).contains(&elapsed), "{elapsed:?}");
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn or_with_its_next_message_once_the_client_has_left() {
    local(async {
        let server = Rig::start(tunnels(push));
        let (mut client, since) = drained_while_pushing(&server).await;
        client.send(REPLY).await;
        drop(client);
        assert_eq!(server.ended().await.aborted, []);
        let elapsed = since.elapsed();
        assert!(elapsed < 4 * SECOND, "{elapsed:?}");
    })
    .await;
}

/// Opens a WebSocket, drains its server, and returns the client and since when that is.
async fn drained(server: &Rig) -> (Client, Instant) {
    let client = opened(server, WEBSOCKET).await;
    settle().await;
    server.handle.drain();
    (client, Instant::now())
}

#[tokio::test(start_paused = true)]
async fn a_websocket_that_writes_rarely_gets_its_close_frame_at_once() {
    local(async {
        let server = Rig::start(tunnels(|mut io| async move {
            while io.write_all(&MESSAGE).await.is_ok() {
                sleep(10 * SECOND).await;
            }
        }));
        let (mut client, since) = drained(&server).await;
        assert_eq!(client.read_exactly(4).await, MESSAGE);
        assert_eq!(client.read_exactly(4).await, CLOSE);
        let elapsed = since.elapsed();
        assert!(elapsed < SECOND, "{elapsed:?}");
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_in_the_midst_of_a_message_gets_it_behind_that() {
    local(async {
        let go_on = Arc::new(Notify::new());
        let awaited = Arc::clone(&go_on);
        let server = Rig::start(tunnels(move |mut io| {
            let awaited = Arc::clone(&awaited);
            async move {
                let (begin, rest) = MESSAGE.split_at(3);
                io.write_all(begin).await.unwrap();
                awaited.notified().await;
                io.write_all(rest).await.unwrap();
                sleep(10 * SECOND).await;
            }
        }));
        let (mut client, _) = drained(&server).await;
        sleep(SECOND).await;
        go_on.notify_one();
        let since = Instant::now();
        assert_eq!(client.read_exactly(8).await, [MESSAGE, CLOSE].concat());
        let elapsed = since.elapsed();
        assert!(elapsed < SECOND, "{elapsed:?}");
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_that_writes_without_end_does_not_hold_up_its_loop_after_its_close_frame() {
    local(async {
        let (begin, moved) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (awaited, counted) = (Arc::clone(&begin), Arc::clone(&moved));
        let server = Rig::start(tunnels(move |io| {
            let (awaited, counted) = (Arc::clone(&awaited), Arc::clone(&counted));
            async move {
                awaited.notified().await;
                flood(io, true, counted).await;
            }
        }));
        let mut client = opened(&server, WEBSOCKET).await;
        let mut short = server.connect().await;
        assert_eq!(short.get("/short").await.text(), "short");
        server.handle.drain();
        settle().await;
        begin.notify_one();
        assert_eq!(client.read_exactly(4).await, CLOSE);
        assert_eq!(short.get("/short").await.text(), "short");
        let moved = moved.load(Ordering::Relaxed);
        assert!((1..FLOOD_BYTES).contains(&moved), "{moved} bytes");
    })
    .await;
}

/// Reads in one task, and in the other writes until the socket is full, which it tells, and once
/// more when it is told to.
async fn split(io: TokioIo<Upgraded>, [full, begin]: [Arc<Notify>; 2]) {
    let (mut reader, mut writer) = tokio::io::split(io);
    let reading = spawn_local(async move {
        let mut piece = [0; 100];
        while let Ok(1..) = reader.read(&mut piece).await {}
    });
    // As long as the system takes one as a whole or not at all.
    let mut message = vec![0; 10_004];
    message[..4].copy_from_slice(&[0x82, 126, 0x27, 0x10]);
    while let Some(written) = writer.write(&message).now_or_never() {
        assert_eq!(written.unwrap(), message.len());
    }
    full.notify_one();
    begin.notified().await;
    // It is after the close frame, which nothing follows.
    assert_eq!(writer.write(&MESSAGE).await.unwrap(), MESSAGE.len());
    drop(writer);
    reading.await.unwrap();
}

/// Whichever of the two waits for room for the close frame.
#[tokio::test(start_paused = true)]
async fn a_reader_and_a_writer_in_two_tasks_go_on_when_there_is_room_for_the_close_frame() {
    local(async {
        for is_reader_last in [true, false] {
            let events = [Arc::new(Notify::new()), Arc::new(Notify::new())];
            let [full, begin] = events.clone();
            let server = Rig::start(tunnels(move |io| split(io, events.clone())));
            let mut client = opened(&server, WEBSOCKET).await;
            full.notified().await;
            server.handle.drain();
            settle().await;
            begin.notify_one();
            settle().await;
            if is_reader_last {
                client.send(PING).await;
                settle().await;
            }
            let since = Instant::now();
            let all = client.rest().await;
            assert!(all.ends_with(&CLOSE), "{is_reader_last}");
            let elapsed = since.elapsed();
            assert!(elapsed < 8 * SECOND, "{is_reader_last}: {elapsed:?}");
            assert_eq!(server.ended().await.aborted, []);
        }
    })
    .await;
}
