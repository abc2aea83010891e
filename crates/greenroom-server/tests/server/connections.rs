//! Many connections: spread over the loops, and limited in number.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_server::{Address, App, DrainReport, Error, Handle, Limits, Server, ServerBuilder};
use tempfile::tempdir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::client::{Client, get};
use crate::listening::{ANY_PORT, tcp_address};
use crate::rig::{Rig, app, local, settle, text, within};

/// A server of two loops that responds with the name of the loop's thread.
struct Pair {
    address: Address,
    handle: Handle,
    serving: JoinHandle<Result<DrainReport, Error>>,
}

impl Pair {
    fn start(builder: ServerBuilder) -> Self {
        let server = builder.loops(2.try_into().unwrap()).bind().unwrap();
        let address = server.local_addresses()[0].clone();
        let handle = server.handle();
        let name = || std::thread::current().name().unwrap_or_default().to_owned();
        let app = app(move |_| async move { Ok(text(name())) });
        Self {
            address,
            handle,
            serving: tokio::spawn(server.serve(app)),
        }
    }

    async fn connect(&self) -> Client {
        match &self.address {
            Address::Tcp(address) => Client::tcp(*address).await,
            Address::Unix(path) => Client::unix(path).await,
        }
    }

    /// Counts these connections by the loop that serves them.
    async fn spread(&self, clients: &mut [Client]) -> BTreeMap<String, usize> {
        let names = clients.iter_mut().map(|client| async {
            // Asked twice: a connection never changes its loop.
            let first = client.get("/").await.text().to_owned();
            assert_eq!(client.get("/").await.text(), first);
            first
        });
        let mut spread = BTreeMap::new();
        for name in join_all(names).await {
            *spread.entry(name).or_insert(0) += 1;
        }
        spread
    }

    async fn end(self) {
        self.handle.drain();
        self.serving.await.unwrap().unwrap();
    }
}

async fn assert_even(pair: Pair, at_once: bool) {
    let mut clients = Vec::new();
    for _ in 0..64 {
        let mut client = pair.connect().await;
        if !at_once {
            client.get("/").await;
        }
        clients.push(client);
    }
    let spread = pair.spread(&mut clients).await;
    assert_eq!(spread.values().sum::<usize>(), 64);
    assert!(spread.values().all(|&of_loop| of_loop <= 36), "{spread:?}");
    drop(clients);
    pair.end().await;
}

#[tokio::test]
async fn of_64_connections_one_by_one_neither_of_2_loops_has_over_36() {
    within(assert_even(
        Pair::start(Server::builder().listen(ANY_PORT)),
        false,
    ))
    .await;
}

#[tokio::test]
async fn of_64_connections_at_once_neither_of_2_loops_has_over_36() {
    within(assert_even(
        Pair::start(Server::builder().listen(ANY_PORT)),
        true,
    ))
    .await;
}

#[tokio::test]
async fn so_it_is_with_a_listener_of_the_caller() {
    for at_once in [false, true] {
        let listener = TcpListener::bind(ANY_PORT).unwrap();
        let pair = Pair::start(Server::builder().listener(listener));
        within(assert_even(pair, at_once)).await;
    }
}

#[tokio::test]
async fn so_it_is_with_a_unix_socket() {
    for at_once in [false, true] {
        let directory = tempdir().unwrap();
        let path = directory.path().join("server.sock");
        let pair = Pair::start(Server::builder().listen(Address::Unix(path)));
        within(assert_even(pair, at_once)).await;
    }
}

#[tokio::test]
async fn connections_that_wait_in_one_burst_are_spread_too() {
    within(async {
        let directory = tempdir().unwrap();
        let path = directory.path().join("server.sock");
        // Bound, so clients can connect; not served yet, so they all wait to be accepted at once.
        let bound = Server::builder()
            .loops(2.try_into().unwrap())
            .listen(Address::Unix(path.clone()))
            .bind()
            .unwrap();
        let mut clients = Vec::new();
        for _ in 0..64 {
            clients.push(Client::unix(&path).await);
        }
        let handle = bound.handle();
        let name = || std::thread::current().name().unwrap_or_default().to_owned();
        let serving = tokio::spawn(bound.serve(app(move |_| async move { Ok(text(name())) })));
        let pair = Pair {
            address: Address::Unix(path),
            handle,
            serving,
        };
        let spread = pair.spread(&mut clients).await;
        assert!(spread.values().all(|&of_loop| of_loop <= 36), "{spread:?}");
        pair.end().await;
    })
    .await;
}

#[tokio::test]
async fn ten_rounds_of_short_connections_are_all_served() {
    within(async {
        let pair = Pair::start(Server::builder().listen(ANY_PORT));
        for _ in 0..10 {
            let asks = (0..50).map(|_| async { pair.connect().await.get("/").await.status });
            assert!(join_all(asks).await.iter().all(|&status| status == 200));
        }
        pair.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_port_is_served_by_all_loops_of_a_server_bound_by_number() {
    within(async {
        let bound = Server::builder().listen(ANY_PORT).bind().unwrap();
        let address = tcp_address(&bound);
        drop(bound);
        let pair = Pair::start(Server::builder().listen(address));
        assert_even(pair, false).await;
    })
    .await;
}

fn never_or_ok() -> impl App {
    app(|request| async move {
        if request.uri().path() == "/never" {
            std::future::pending::<()>().await;
        }
        Ok(text("ok"))
    })
}

fn at_most(connections_max: usize) -> Rig {
    let limits = Limits {
        connections_max,
        ..Limits::default()
    };
    Rig::with(never_or_ok(), |builder| builder.limits(limits))
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_the_longest_idle_connection_makes_room() {
    local(async {
        let server = at_most(3);
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = server.connect().await;
            assert_eq!(client.get("/").await.status, 200);
            clients.push(client);
            sleep(Duration::from_secs(2)).await;
        }
        // The first is used again, so the second is the one that has been idle longest.
        assert_eq!(clients[0].get("/").await.status, 200);
        sleep(Duration::from_secs(1)).await;
        let mut new_client = server.connect().await;
        assert_eq!(new_client.get("/").await.status, 200);
        assert!(clients[1].is_closed().await);
        assert_eq!(clients[0].get("/").await.status, 200);
        assert_eq!(clients[2].get("/").await.status, 200);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_requests_under_way_are_not_given_up_for_new_clients() {
    local(async {
        let server = at_most(2);
        let mut busy = server.connect().await;
        busy.send(get("/never")).await;
        let mut other = server.connect().await;
        other.send(get("/never")).await;
        settle().await;
        let mut new_client = server.connect().await;
        new_client.send(get("/")).await;
        let waited = timeout(Duration::from_secs(20), new_client.head()).await;
        assert!(waited.is_err(), "served over the limit");
        drop(busy);
        assert_eq!(new_client.response().await.status, 200);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_another_loops_idle_connection_makes_room() {
    local(async {
        let limits = Limits {
            connections_max: 2,
            ..Limits::default()
        };
        let server = Rig::with(never_or_ok(), |builder| {
            builder.limits(limits).loops(2.try_into().unwrap())
        });
        let mut first = server.connect().await;
        first.send(get("/never")).await;
        settle().await;
        let mut second = server.connect().await;
        assert_eq!(second.get("/").await.status, 200);
        let mut new_client = server.connect().await;
        let since = Instant::now();
        assert_eq!(new_client.get("/").await.status, 200);
        assert!(since.elapsed() < Duration::from_secs(2));
        assert!(second.is_closed().await);
    })
    .await;
}
