//! Clients that leave while their request is under way are not worked for.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::client::{get, post};
use crate::rig::{Dropped, Rig, app, local, streamed, text};

/// A server whose handler waits for ever, and what tells of its being dropped.
fn waiting() -> (Rig, mpsc::UnboundedReceiver<Instant>) {
    let (tell, told) = mpsc::unbounded_channel();
    let server = Rig::start(app(move |_| {
        let kept = Dropped(tell.clone());
        async {
            let _kept = kept;
            std::future::pending().await
        }
    }));
    (server, told)
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

fn after_a_second(half_close: bool) -> Rig {
    let handler = app(|_| async {
        sleep(Duration::from_secs(1)).await;
        Ok(text("still there?"))
    });
    Rig::with(handler, |builder| builder.half_close(half_close))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ended_its_side_is_answered_if_the_server_is_told_to() {
    local(async {
        let server = after_a_second(true);
        let mut client = server.connect().await;
        client.send(get("/") + &get("/")).await;
        client.end().await;
        assert_eq!(client.answer().await.text(), "still there?");
        assert_eq!(client.answer().await.text(), "still there?");
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
async fn an_answer_that_is_ready_at_once_goes_to_whoever_ended_its_side() {
    local(async {
        let server = Rig::start(app(|_| async { Ok(text("at once")) }));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        client.end().await;
        assert_eq!(client.answer().await.text(), "at once");
        assert!(client.is_closed().await);
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
        assert_eq!(client.answer().await.text(), "soon");
        assert!(client.is_closed().await);
    })
    .await;
}
