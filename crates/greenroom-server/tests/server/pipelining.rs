//! Several requests at once on one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom_server::RequestBody;
use http::Request;
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep};

use crate::client::{get, post};
use crate::rig::{Reply, Rig, app, assert_elapsed, local, text, within};

/// Responds with the path and the body, after a second if the path says so.
async fn named(request: Request<RequestBody>) -> Reply {
    let path = request.uri().path().to_owned();
    if path.starts_with("/slow") {
        sleep(Duration::from_secs(1)).await;
    }
    let body = request.into_body().collect().await?.to_bytes();
    Ok(text(path + std::str::from_utf8(&body)?))
}

#[tokio::test(start_paused = true)]
async fn sixteen_requests_in_one_segment_get_their_responses_together_and_in_order() {
    local(async {
        let server = Rig::start(app(named));
        let mut client = server.connect().await;
        let all: String = (0..16).map(|number| get(&format!("/{number}"))).collect();
        client.send(all).await;
        let first_read = client.read_up_to(usize::MAX).await;
        let first_read = String::from_utf8(first_read).unwrap();
        assert_eq!(first_read.matches("HTTP/1.1 200 OK\r\n").count(), 16);
        let bodies: Vec<_> = (0..16).map(|number| format!("\r\n\r\n/{number}")).collect();
        let places: Vec<_> = bodies
            .iter()
            .map(|body| first_read.find(body).unwrap())
            .collect();
        assert!(places.is_sorted(), "{places:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_requests_in_one_go_are_all_served() {
    local(async {
        let server = Rig::start(app(named));
        let mut client = server.connect().await;
        let all: String = (0..1_000)
            .map(|number| get(&format!("/{number}")))
            .collect();
        client.send(all).await;
        for number in 0..1_000 {
            assert_eq!(client.response().await.text(), format!("/{number}"));
        }
    })
    .await;
}

/// Sends `count` requests ahead on one connection, then a short one on another, and returns how
/// many were handled before the response to that.
async fn handled_before_a_short_one(
    count: usize,
    work: impl Fn() + Send + Sync + Clone + 'static,
) -> usize {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let server = Rig::start(app(move |request: Request<RequestBody>| {
        if request.uri().path() != "/short" {
            counted.fetch_add(1, Ordering::Relaxed);
            work();
        }
        named(request)
    }));
    let mut short = server.connect().await;
    assert_eq!(short.get("/short").await.text(), "/short");
    let mut ahead = server.connect().await;
    assert_eq!(ahead.get("/").await.text(), "/");
    ahead.send(get("/").repeat(count)).await;
    let before = calls.load(Ordering::Relaxed);
    assert_eq!(short.get("/short").await.text(), "/short");
    let meanwhile = calls.load(Ordering::Relaxed) - before;
    for _ in 0..count {
        assert_eq!(ahead.response().await.text(), "/");
    }
    meanwhile
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_a_thousand_ahead_lets_others_go_between() {
    local(async {
        let handled = handled_before_a_short_one(1_000, || {}).await;
        assert!(handled <= 500, "{handled}");
    })
    .await;
}

/// The number that is served at once is bounded by their time.
#[tokio::test]
async fn so_does_one_whose_requests_take_their_time() {
    within(async {
        let work = || std::thread::sleep(Duration::from_millis(1));
        let handled = handled_before_a_short_one(200, work).await;
        assert!(handled <= 40, "{handled}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn requests_behind_a_slow_one_wait_for_it() {
    local(async {
        let server = Rig::start(app(named));
        let mut client = server.connect().await;
        let since = Instant::now();
        client
            .send(get("/fast") + &get("/slow/1") + &get("/slow/2") + &get("/last"))
            .await;
        for path in ["/fast", "/slow/1", "/slow/2", "/last"] {
            assert_eq!(client.response().await.text(), path);
        }
        assert_elapsed(since, Duration::from_secs(2));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn requests_behind_a_body_are_told_apart_from_it() {
    local(async {
        let server = Rig::start(app(named));
        let mut client = server.connect().await;
        let counted = post("/counted", "Content-Length: 5\r\n") + "GET /";
        let chunked = post("/chunked", "Transfer-Encoding: chunked\r\n");
        let chunked = chunked + "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n";
        client
            .send(
                counted
                    + &get("/1")
                    + &chunked
                    + &get("/2")
                    + &post("/slow", "Content-Length: 1\r\n"),
            )
            .await;
        client.send("z".to_owned() + &get("/3")).await;
        for response in ["/countedGET /", "/1", "/chunkedabcde", "/2", "/slowz", "/3"] {
            assert_eq!(client.response().await.text(), response);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_served_behind_a_request_that_closes() {
    local(async {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let server = Rig::start(app(move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            named(request)
        }));
        let mut client = server.connect().await;
        let closing = "GET /2 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        client.send(get("/1") + closing + &get("/3")).await;
        assert_eq!(client.response().await.text(), "/1");
        let response = client.response().await;
        assert_eq!((response.text(), response.closes()), ("/2", true));
        assert!(client.is_closed().await);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_malformed_request_behind_others_is_refused_after_their_responses() {
    local(async {
        let server = Rig::start(app(named));
        let mut client = server.connect().await;
        client
            .send(get("/1") + &get("/slow") + "GET / HTTP/1.1\r\n\r\n" + &get("/4"))
            .await;
        assert_eq!(client.response().await.text(), "/1");
        assert_eq!(client.response().await.text(), "/slow");
        assert_eq!(client.response().await.status, 400);
        assert!(client.is_closed().await);
    })
    .await;
}
