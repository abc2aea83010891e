//! Connections that were handed over because of an `Upgrade`: the same limits as elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom_server::{Limits, RequestBody};
use http::{HeaderValue, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::acceptors;
use crate::client::{get, post};
use crate::over;
use crate::rig::{
    Dropped, Reply, Rig, app, assert_elapsed, endless, local, measure, streamed, text,
};
use crate::timeouts::assert_disconnected_when_it_stops_reading;
use crate::torrents::{Http1, Torrent};

const SECOND: Duration = Duration::from_secs(1);
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: unheard-of\r\n";

fn upgrading(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\n{UPGRADE}\r\n")
}

async fn handler(request: Request<RequestBody>) -> Reply {
    match request.uri().path() {
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

/// The most that the application below moves: some hundred times what its loop may let it move
/// before a short request is served.
const FLOOD_BYTES: usize = 64 * 1_024 * 1_024;

/// Reads from its client, or writes to it, in small pieces and without end, as no application
/// should.
async fn flood(request: Request<RequestBody>, is_writing: bool, moved: Arc<AtomicUsize>) {
    let upgraded = hyper::upgrade::on(request).await.expect("it is taken");
    let (mut io, mut piece) = (TokioIo::new(upgraded), [0; 512]);
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
    let server = app(move |request: Request<RequestBody>| {
        let counted = Arc::clone(&counted);
        async move {
            if request.uri().path() == "/short" {
                return Ok(text("short"));
            }
            tokio::task::spawn_local(flood(request, is_writing, counted));
            let mut response = text("");
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let fields = response.headers_mut();
            fields.insert("connection", HeaderValue::from_static("upgrade"));
            fields.insert("upgrade", HeaderValue::from_static("unheard-of"));
            Ok(response)
        }
    });
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
