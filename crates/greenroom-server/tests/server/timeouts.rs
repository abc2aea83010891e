//! Clients that keep the server waiting, on a clock that only the test moves.

use std::time::Duration;

use greenroom_server::Limits;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::client::{get, post};
use crate::rig::{Dropped, Rig, app, assert_elapsed, endless, local, streamed, text};

const SECOND: Duration = Duration::from_secs(1);

fn hello() -> Rig {
    Rig::start(app(|_| async { Ok(text("hello")) }))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_gets_408_after_10_s() {
    local(async {
        let server = hello();
        let mut client = server.connect().await;
        let since = Instant::now();
        let response = client.response().await;
        assert_elapsed(since, 10 * SECOND);
        assert_eq!(response.status, 408);
        assert!(response.closes());
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_stops_half_way_is_408_after_10_s() {
    local(async {
        let server = hello();
        let mut client = server.connect().await;
        client.send("GET / HTTP/1.1\r\nHost: te").await;
        let since = Instant::now();
        assert_eq!(client.response().await.status, 408);
        assert_elapsed(since, 10 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_dribbles_is_408_after_10_s_all_the_same() {
    local(async {
        let server = hello();
        let mut client = server.connect().await;
        let since = Instant::now();
        for byte in get("/a/rather/long/path").as_bytes().chunks(1).take(9) {
            client.send(byte).await;
            sleep(SECOND).await;
        }
        assert_eq!(client.response().await.status, 408);
        assert_elapsed(since, 10 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_time_for_a_later_head_begins_with_its_first_byte() {
    local(async {
        let server = hello();
        let mut client = server.connect().await;
        assert_eq!(client.get("/").await.status, 200);
        sleep(40 * SECOND).await;
        client.send("GET").await;
        let since = Instant::now();
        assert_eq!(client.response().await.status, 408);
        assert_elapsed(since, 10 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_408_after_a_head_request_has_its_body() {
    local(async {
        let server = hello();
        let mut client = server.connect().await;
        client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n").await;
        assert_eq!(client.head().await.0, 200);
        client.send("GET").await;
        let response = client.response().await;
        assert_eq!(response.status, 408);
        assert!(!response.body.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_75_s_without_a_byte() {
    local(async {
        let server = hello();
        let mut client = server.connect().await;
        assert_eq!(client.get("/").await.status, 200);
        let since = Instant::now();
        assert!(client.is_closed().await);
        assert_elapsed(since, 75 * SECOND);
    })
    .await;
}

/// Some clients send an empty line behind a body (RFC 9112, 2.2), which is no request.
#[tokio::test(start_paused = true)]
async fn an_empty_line_behind_a_body_is_no_head_that_is_late() {
    local(async {
        let server = hello();
        let mut client = server.connect().await;
        client
            .send(post("/", "Content-Length: 4\r\n") + "body\r\n")
            .await;
        assert_eq!(client.response().await.status, 200);
        sleep(20 * SECOND).await;
        assert_eq!(client.get("/").await.status, 200);
        client.send("\r\n").await;
        assert!(client.is_closed().await, "without a response");
    })
    .await;
}

/// Balancers that close idle connections after 60 s must find them open until then.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_used_in_time_is_kept() {
    local(async {
        let server = hello();
        let mut client = server.connect().await;
        for _ in 0..20 {
            assert_eq!(client.get("/").await.text(), "hello");
            sleep(74 * SECOND).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_take_five_minutes() {
    local(async {
        let server = Rig::start(app(|_| async {
            sleep(300 * SECOND).await;
            Ok(text("at last"))
        }));
        let mut client = server.connect().await;
        let since = Instant::now();
        assert_eq!(client.get("/").await.text(), "at last");
        assert_elapsed(since, 300 * SECOND);
    })
    .await;
}

/// Asserts that a client that reads this many times every 20 s, and then no more, is disconnected
/// 30 s later.
pub(crate) async fn assert_disconnected_when_it_stops_reading(request: String, reads: u32) {
    local(async {
        let (tell, mut told) = mpsc::unbounded_channel();
        let server = Rig::start(app(move |_| {
            let kept = Dropped(tell.clone());
            async { Ok(streamed(endless(kept))) }
        }));
        let mut client = server.connect().await;
        client.send(request).await;
        for _ in 0..reads {
            sleep(20 * SECOND).await;
            assert!(told.try_recv().is_err(), "aborted while it was reading");
            client.read_exactly(500_000).await;
        }
        let since = Instant::now();
        told.recv().await.unwrap();
        assert_elapsed(since, 30 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_is_disconnected_30_s_later() {
    assert_disconnected_when_it_stops_reading(get("/"), 20).await;
}

/// Wherever between two ticks of its clock the server begins to wait.
#[tokio::test(start_paused = true)]
async fn no_time_out_is_early_nor_more_than_a_tick_late() {
    local(async {
        let limits = Limits {
            head_timeout: SECOND,
            keep_alive_timeout: SECOND,
            ..Limits::default()
        };
        let server = Rig::with(app(|_| async { Ok(text("ok")) }), |builder| {
            builder.limits(limits)
        });
        for _ in 0..50 {
            sleep(Duration::from_millis(7)).await;
            let mut idle = server.connect().await;
            assert_eq!(idle.get("/").await.status, 200);
            let since = Instant::now();
            assert!(idle.is_closed().await);
            assert_at_most_a_tick_late(since);
            let since = Instant::now();
            let mut silent = server.connect().await;
            assert_eq!(silent.response().await.status, 408);
            assert_at_most_a_tick_late(since);
        }
    })
    .await;
}

#[track_caller]
fn assert_at_most_a_tick_late(since: Instant) {
    let milliseconds = since.elapsed().as_millis();
    assert!((1_000..1_260).contains(&milliseconds), "{milliseconds} ms");
}

#[tokio::test(start_paused = true)]
async fn time_outs_are_settings() {
    local(async {
        let limits = Limits {
            head_timeout: 2 * SECOND,
            keep_alive_timeout: 3 * SECOND,
            ..Limits::default()
        };
        let server = Rig::with(app(|_| async { Ok(text("ok")) }), |builder| {
            builder.limits(limits)
        });
        let since = Instant::now();
        let mut silent = server.connect().await;
        assert_eq!(silent.response().await.status, 408);
        assert_elapsed(since, 2 * SECOND);
        let mut idle = server.connect().await;
        assert_eq!(idle.get("/").await.status, 200);
        let since = Instant::now();
        assert!(idle.is_closed().await);
        assert_elapsed(since, 3 * SECOND);
    })
    .await;
}
