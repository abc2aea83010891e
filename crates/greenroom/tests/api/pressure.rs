//! Requests that a loop which is behind with its work still serves.

use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use futures_util::FutureExt;
use futures_util::future::join_all;
use greenroom::{Address, Placement, Priority, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::LocalSet;
use tokio::time::advance;

/// See `greenroom_stage::placement::WORTH_SHEDDING`.
const WORTH_SHEDDING: Duration = Duration::from_micros(200);

const CLIENTS: usize = 100;

/// Computes for 2 ms of the paused clock, in which no other task runs, and for long enough in real
/// time that it is worth rejecting.
async fn compute() -> &'static str {
    let began = Instant::now();
    while began.elapsed() < WORTH_SHEDDING * 3 / 2 {}
    let _moved = advance(Duration::from_millis(2)).now_or_never();
    "done"
}

/// Sends so many requests on one connection; returns the statuses.
async fn ask(address: &Address, path: &str, rounds: usize) -> Vec<String> {
    let path_of_socket = address.to_string();
    let path_of_socket = path_of_socket.trim_start_matches("unix:");
    let mut stream = UnixStream::connect(path_of_socket).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut statuses = Vec::new();
    for _ in 0..rounds {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = [0; 1_024];
        let length = stream.read(&mut response).await.unwrap();
        let response = String::from_utf8_lossy(&response[..length]).into_owned();
        let is_refused = response.starts_with("HTTP/1.1 503");
        assert_eq!(
            response.contains("retry-after: 1\r\n"),
            is_refused,
            "{response}"
        );
        statuses.push(response[9..12].to_owned());
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

struct Statuses {
    normal: Vec<Vec<String>>,
    critical: Vec<Vec<String>>,
    bulk: Vec<Vec<String>>,
}

/// [`CLIENTS`] of each priority send so many requests, all on one loop.
async fn all_ask(rounds: usize) -> Statuses {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let address: Address = format!("unix:{}", socket.display()).parse().unwrap();
    let placed = |path: &str, priority| {
        let placement = Placement::inline().priority(priority);
        Router::new().route(path, get(compute)).layer(placement)
    };
    let app = placed("/normal", Priority::Normal)
        .merge(placed("/critical", Priority::Critical))
        .merge(placed("/bulk", Priority::Bulk));
    let server = Server::builder().listen(address.clone()).bind().unwrap();
    let local = LocalSet::new();
    local.spawn_local(async move { server.serve_local(app).await.map(drop) });
    let all = |path| join_all((0..CLIENTS).map(|_| ask(&address, path, rounds)));
    let asking = async { tokio::join!(all("/normal"), all("/critical"), all("/bulk")) };
    let (normal, critical, bulk) = local.run_until(asking).await;
    Statuses {
        normal,
        critical,
        bulk,
    }
}

/// A round takes 600 ms while nothing is rejected, so the first two are a burst yet.
#[tokio::test(start_paused = true)]
async fn under_lasting_overload_normal_requests_are_refused_and_critical_ones_never() {
    const ROUNDS: usize = 8;
    let asked = all_ask(ROUNDS).await;
    assert_eq!(count(&asked.critical, "200"), CLIENTS * ROUNDS);
    assert!(count(&asked.normal, "503") > 0);
    assert!(count(&asked.normal, "200") > 0);
    assert!(count(&asked.bulk, "503") >= count(&asked.normal, "503"));
}

/// 300 at once, which wait for up to 600 ms: 30 times the lag that is allowed to last.
#[tokio::test(start_paused = true)]
async fn of_a_burst_that_is_over_within_a_second_nothing_is_refused() {
    let asked = all_ask(1).await;
    for statuses in [&asked.normal, &asked.critical, &asked.bulk] {
        assert_eq!(count(statuses, "200"), CLIENTS);
    }
}
