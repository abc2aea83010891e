//! What a loop that is behind with its work still answers.

use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use futures_util::FutureExt;
use futures_util::future::join_all;
use greenroom::{Address, Importance, Placement, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::LocalSet;
use tokio::time::advance;

/// See `greenroom_stage::placement::WORTH_SHEDDING`.
const WORTH_SHEDDING: Duration = Duration::from_micros(200);

const CLIENTS: usize = 100;
const ROUNDS: usize = 6;

/// Computes for 2 ms of the paused clock, in which nobody else runs, and for long enough in truth that
/// it is worth refusing.
async fn compute() -> &'static str {
    let began = Instant::now();
    while began.elapsed() < WORTH_SHEDDING * 3 / 2 {}
    let _moved = advance(Duration::from_millis(2)).now_or_never();
    "done"
}

/// Asks again and again on one connection; the statuses.
async fn ask(address: &Address, path: &str) -> Vec<String> {
    let path_of_socket = address.to_string();
    let path_of_socket = path_of_socket.trim_start_matches("unix:");
    let mut stream = UnixStream::connect(path_of_socket).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut statuses = Vec::new();
    for _ in 0..ROUNDS {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 1_024];
        let length = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        let is_refused = answer.starts_with("HTTP/1.1 503");
        assert_eq!(
            answer.contains("retry-after: 1\r\n"),
            is_refused,
            "{answer}"
        );
        statuses.push(answer[9..12].to_owned());
    }
    statuses
}

fn count(statuses: &[Vec<String>], status: &str) -> usize {
    statuses
        .iter()
        .flatten()
        .filter(|other| *other == status)
        .count()
}

#[tokio::test(start_paused = true)]
async fn normal_requests_are_refused_and_critical_ones_never() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let address: Address = format!("unix:{}", socket.display()).parse().unwrap();
    let placed = |path: &str, importance| {
        let placement = Placement::inline().importance(importance);
        Router::new().route(path, get(compute)).layer(placement)
    };
    let app = placed("/normal", Importance::Normal)
        .merge(placed("/critical", Importance::Critical))
        .merge(placed("/bulk", Importance::Bulk));
    let server = Server::builder().listen(address.clone()).bind().unwrap();
    let local = LocalSet::new();
    local.spawn_local(async move { server.serve_local(app).await.map(drop) });
    local
        .run_until(async {
            let all = |path| join_all((0..CLIENTS).map(|_| ask(&address, path)));
            let (normal, critical, bulk) =
                tokio::join!(all("/normal"), all("/critical"), all("/bulk"));
            assert_eq!(count(&critical, "200"), CLIENTS * ROUNDS);
            assert!(count(&normal, "503") > 0);
            assert!(count(&normal, "200") > 0);
            assert!(count(&bulk, "503") >= count(&normal, "503"));
        })
        .await;
}
