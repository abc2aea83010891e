//! Bodies of requests: streamed, unread, malformed, abandoned.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use greenroom_server::{BodyError, RequestBody};
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::client::{Client, get, post};
use crate::rig::{Reply, Rig, app, local, measure, text};

/// Writes until the server takes no more for 5 s: how many bytes it took.
async fn fill(client: &mut Client, bytes: usize) -> usize {
    let part = vec![b'f'; 64 * 1_024];
    let mut sent = 0;
    while sent < bytes {
        let part = &part[..part.len().min(bytes - sent)];
        match timeout(Duration::from_secs(5), client.write_some(part)).await {
            Ok(written) => sent += written,
            Err(_) => break,
        }
    }
    sent
}

#[tokio::test(start_paused = true)]
async fn a_client_is_read_only_as_fast_as_the_application_reads() {
    local(async {
        const ALL: usize = 50_000_000;
        let go_on = Arc::new(Notify::new());
        let release = Arc::clone(&go_on);
        let server = Rig::start(app(move |request| {
            let go_on = Arc::clone(&go_on);
            async move {
                let mut body = request.into_body();
                let first = body.frame().await.unwrap()?.into_data().unwrap();
                go_on.notified().await;
                let rest = body.collect().await?.to_bytes();
                Ok(text((first.len() + rest.len()).to_string()))
            }
        }));
        let mut client = server.connect().await;
        let head = post("/", &format!("Content-Length: {ALL}\r\n"));
        client.send(head).await;
        let taken = fill(&mut client, ALL).await;
        assert!(taken < 1_500_000, "the server took {taken} bytes ahead");
        release.notify_one();
        assert_eq!(taken + fill(&mut client, ALL - taken).await, ALL);
        // Over TLS the client itself may hold the last of it.
        client.send([]).await;
        assert_eq!(client.response().await.text(), ALL.to_string());
    })
    .await;
}

async fn echo(request: Request<RequestBody>) -> Reply {
    let body = request.into_body().map_err(Into::into);
    Ok(Response::new(body.boxed_unsync()))
}

#[tokio::test(start_paused = true)]
async fn a_body_can_be_echoed_part_by_part() {
    local(async {
        let server = Rig::start(app(echo));
        let mut client = server.connect().await;
        client
            .send(post("/", "Transfer-Encoding: chunked\r\n"))
            .await;
        client.send("3\r\nabc\r\n").await;
        assert_eq!(client.head().await.0, 200);
        assert_eq!(client.read_exactly(6).await, b"3\r\nabc");
        for number in 0..100 {
            let part = format!("{number:04}").repeat(2_048);
            client.send(format!("2000\r\n{part}\r\n")).await;
            let mut back = Vec::new();
            while back.len() < part.len() {
                assert_eq!(client.read_exactly(2).await, b"\r\n");
                let mut size = Vec::new();
                while !size.ends_with(b"\r\n") {
                    size.extend(client.read_exactly(1).await);
                }
                let size = std::str::from_utf8(&size).unwrap().trim();
                let size = usize::from_str_radix(size, 16).unwrap();
                back.extend(client.read_exactly(size).await);
            }
            assert_eq!(back, part.as_bytes());
        }
        client.send("0\r\n\r\n").await;
        assert_eq!(client.read_exactly(7).await, b"\r\n0\r\n\r\n");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn trailers_reach_the_application() {
    local(async {
        let server = Rig::start(app(|request| async {
            let collected = request.into_body().collect().await?;
            let trailer = collected.trailers().unwrap()["x-sum"].clone();
            let body = collected.to_bytes();
            Ok(text(format!("{} {}", body.len(), trailer.to_str()?)))
        }));
        let mut client = server.connect().await;
        let head = post("/", "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n");
        client
            .send(head + "4\r\nabcd\r\n0\r\nX-Sum: 17\r\n\r\n")
            .await;
        assert_eq!(client.response().await.text(), "4 17");
        assert_eq!(client.get("/none").await.status, 500);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_read_is_passed_over_before_the_next_request() {
    local(async {
        let server = Rig::start(app(|request| async move {
            Ok(text(request.uri().path().to_owned()))
        }));
        for bytes in [10, 100_000, 262_144] {
            let mut client = server.connect().await;
            let field = format!("Content-Length: {bytes}\r\n");
            client.send(post("/post", &field)).await;
            assert_eq!(client.response().await.text(), "/post");
            client.send(vec![b'b'; bytes]).await;
            assert_eq!(client.get("/get").await.text(), "/get", "{bytes}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_longer_body_that_nobody_read_ends_the_connection() {
    local(async {
        let server = Rig::start(app(|_| async { Ok(text("unread")) }));
        let mut client = server.connect().await;
        client.send(post("/", "Content-Length: 1000000\r\n")).await;
        let response = client.response().await;
        assert_eq!((response.text(), response.closes()), ("unread", true));
        client.try_send(vec![b'b'; 1_000_000]).await;
        client.try_send(get("/")).await;
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_with_broken_framing_is_400() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect().await;
        let head = post("/", "Transfer-Encoding: chunked\r\n");
        client.send(head + "4\r\nabcdX\r\n").await;
        let response = client.response().await;
        assert_eq!(response.status, 400);
        assert!(response.closes());
        assert!(client.is_closed().await);
    })
    .await;
}

/// A handler that gives the body to another task, which tells how it ended.
async fn error_seen(play: impl AsyncFnOnce(Client), respond_at_once: bool) -> BodyError {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Rig::start(app(move |request: Request<RequestBody>| {
        let tell = tell.clone();
        let reading = tokio::spawn(async move {
            let result = request.into_body().collect().await;
            tell.send(result.map(drop).unwrap_err()).unwrap();
        });
        async move {
            if !respond_at_once {
                reading.await?;
            }
            Ok(text(Bytes::new()))
        }
    }));
    let mut client = server.connect().await;
    client
        .send(post("/", "Content-Length: 100\r\n") + "some")
        .await;
    play(client).await;
    told.recv().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn whoever_reads_a_body_learns_why_it_ended() {
    local(async {
        let left = error_seen(async |client| drop(client), false).await;
        assert_eq!(left, BodyError::Disconnected);
        let wait = async |mut client: Client| assert_eq!(client.response().await.status, 408);
        assert_eq!(error_seen(wait, false).await, BodyError::TooSlow);
        let over = async |mut client: Client| assert_eq!(client.response().await.status, 200);
        assert_eq!(error_seen(over, true).await, BodyError::Application);
    })
    .await;
}
