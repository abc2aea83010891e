//! The memory that the connections of a server hold together, and its limit.

use std::time::Duration;

use greenroom_server::{Limits, RequestBody};
use http::Request;
use tokio::time::sleep;

use crate::client::{get, post};
use crate::rig::{Reply, Rig, app, local, settle, text};

const KIB: usize = 1_024;
const SECOND: Duration = Duration::from_secs(1);

fn of(memory_max: usize) -> Rig {
    let limits = Limits {
        memory_max,
        ..Limits::default()
    };
    Rig::with(app(handler), |builder| builder.limits(limits))
}

async fn handler(request: Request<RequestBody>) -> Reply {
    match request.uri().path() {
        "/never" => std::future::pending().await,
        _ => Ok(text("ok")),
    }
}

/// A request of so many bytes.
fn of_bytes(path: &str, bytes: usize) -> String {
    get(path).replace("\r\n\r\n", &format!("\r\nX: {}\r\n\r\n", "x".repeat(bytes)))
}

#[tokio::test(start_paused = true)]
async fn requests_under_way_have_so_much_room_and_no_more() {
    local(async {
        let server = of(100 * KIB);
        let mut kept = server.connect().await;
        assert_eq!(kept.get("/").await.status, 200);
        let mut waiting = Vec::new();
        for bytes in [40 * KIB, 60 * KIB] {
            let mut client = server.connect().await;
            client.send(of_bytes("/never", bytes)).await;
            waiting.push(client);
            settle().await;
        }
        let mut new_client = server.connect().await;
        let declined = new_client.get("/").await;
        assert_eq!((declined.status, declined.closes()), (503, true));
        assert_eq!(declined.field("retry-after"), Some("1"));
        assert!(new_client.is_closed().await);
        waiting.pop();
        sleep(SECOND).await;
        // What was idle meanwhile is as good as new.
        assert_eq!(kept.get("/").await.status, 200);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn heads_that_do_not_end_count_and_so_do_bodies_that_nobody_takes() {
    local(async {
        let body = post("/never", "Content-Length: 900000\r\n") + &"b".repeat(60 * KIB);
        let head = of_bytes("/never", 60 * KIB).replace("\r\n\r\n", "\r\n");
        for begun in [body, head] {
            let server = of(60 * KIB);
            let mut first = server.connect().await;
            first.send(&begun).await;
            sleep(SECOND).await;
            let mut other = server.connect().await;
            // A head that is only half there is not waited for either.
            other.send("GET / HTTP/1.1\r\nHost:").await;
            let declined = other.response().await;
            assert_eq!(declined.status, 503);
            assert_eq!(declined.field("retry-after"), Some("1"));
            drop(first);
            sleep(SECOND).await;
            let mut new_client = server.connect().await;
            assert_eq!(new_client.get("/").await.status, 200);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn short_requests_and_idle_connections_hold_nothing() {
    local(async {
        let server = of(1);
        let mut clients = Vec::new();
        for _ in 0..20 {
            let mut client = server.connect().await;
            assert_eq!(client.get("/").await.status, 200);
            assert_eq!(client.get("/").await.status, 200);
            clients.push(client);
        }
    })
    .await;
}
