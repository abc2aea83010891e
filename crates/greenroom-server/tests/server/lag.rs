//! A loop that is behind: it says so, goes slowly with new clients, and comes back.

use std::cell::Cell;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use greenroom_server::{
    App, ConnectionInfo, Handle, Limits, LoopStatus, Pressure, RequestBody, Server,
};
use http::Request;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, advance};

use crate::client::{Client, get};
use crate::listening::{ANY_PORT, tcp_address};
use crate::rig::{Reply, Rig, app, local, settle, text, within};

const MILLISECOND: Duration = Duration::from_millis(1);

/// An application that passes on what it is told of its loop.
#[derive(Clone)]
struct Telling<A> {
    app: A,
    told: UnboundedSender<Pressure>,
}

impl<A: App> App for Telling<A> {
    type Body = A::Body;
    type Service = A::Service;

    fn connect(&self, info: &ConnectionInfo) -> A::Service {
        self.app.connect(info)
    }

    fn pressure(&self, pressure: Pressure) {
        self.told.send(pressure).unwrap();
    }
}

/// `/7` computes for 7 ms of the paused clock: nobody else runs meanwhile.
async fn compute(request: Request<RequestBody>) -> Reply {
    let milliseconds: u32 = request.uri().path()[1..].parse().unwrap();
    let _moved = advance(milliseconds * MILLISECOND).now_or_never();
    Ok(text("done"))
}

struct Watched {
    server: Rig,
    told: UnboundedReceiver<Pressure>,
}

impl Watched {
    fn start(limit: Duration) -> Self {
        let (tell, told) = unbounded_channel();
        let limits = Limits {
            loop_lag_max: limit,
            ..Limits::default()
        };
        let app = Telling {
            app: app(compute),
            told: tell,
        };
        let server = Rig::with(app, |builder| builder.limits(limits));
        Self { server, told }
    }

    async fn clients(&self, number: usize) -> Vec<Client> {
        let mut clients = Vec::new();
        for _ in 0..number {
            let mut client = self.server.connect().await;
            assert_eq!(client.get("/0").await.status, 200);
            clients.push(client);
        }
        clients
    }

    fn told(&mut self) -> Vec<Pressure> {
        std::iter::from_fn(|| self.told.try_recv().ok()).collect()
    }

    fn status(&self) -> LoopStatus {
        only_loop(&self.server.handle)
    }
}

fn only_loop(server: &Handle) -> LoopStatus {
    let mut loops = server.loops();
    assert_eq!(loops.len(), 1, "{loops:?}");
    loops.remove(0)
}

/// Has each client ask for `path` so many times, one request after the other.
async fn ask(clients: &mut [Client], path: &str, times: usize) {
    let asking = clients.iter_mut().map(|client| async {
        for _ in 0..times {
            assert_eq!(client.get(path).await.status, 200);
        }
    });
    join_all(asking).await;
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_is_behind_says_so_and_comes_back() {
    local(async {
        let mut watched = Watched::start(20 * MILLISECOND);
        let mut clients = watched.clients(100).await;
        ask(&mut clients, "/1", 20).await;
        settle().await;
        let told = watched.told();
        assert!(told.contains(&Pressure::Over), "{told:?}");
        assert_eq!(told.last(), Some(&Pressure::None), "{told:?}");
        let status = watched.status();
        assert_eq!(status.pressure, Pressure::None);
        assert!(status.over >= 1);
        // 100 clients of 1 ms each: who is ready waits for the others.
        let lag = status.lag;
        assert!((80_000..=110_000).contains(&lag.max_micros), "{lag:?}");
        assert!(lag.count > 0 && lag.p50_micros <= lag.p99_micros);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_is_half_behind_is_under_raised_pressure() {
    local(async {
        let mut watched = Watched::start(120 * MILLISECOND);
        let mut clients = watched.clients(100).await;
        ask(&mut clients, "/1", 20).await;
        settle().await;
        assert_eq!(watched.told(), [Pressure::Raised, Pressure::None]);
        assert_eq!(watched.status().over, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_stall_is_not_pressure() {
    local(async {
        let mut watched = Watched::start(20 * MILLISECOND);
        let mut clients = watched.clients(100).await;
        let mut stalling = watched.clients(1).await;
        let stalls = async {
            for _ in 0..10 {
                ask(&mut stalling, "/500", 1).await;
                ask(&mut stalling, "/0", 20).await;
            }
        };
        tokio::join!(stalls, ask(&mut clients, "/0", 200));
        settle().await;
        assert_eq!(watched.told(), []);
        let seen = watched.status().lag.max_micros;
        assert!(seen >= 490_000, "no probe saw a stall: {seen}");
    })
    .await;
}

/// Up to 100 ms of lag, five times as much as is allowed, and for less than a second.
#[tokio::test(start_paused = true)]
async fn a_burst_is_no_pressure() {
    local(async {
        let mut watched = Watched::start(20 * MILLISECOND);
        let mut clients = watched.clients(100).await;
        for _ in 0..5 {
            ask(&mut clients, "/1", 9).await;
            settle().await;
        }
        assert_eq!(watched.told(), []);
        let seen = watched.status().lag.max_micros;
        assert!(seen >= 80_000, "no probe saw a burst: {seen}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn new_clients_are_served_slowly_while_the_loop_is_behind() {
    local(async {
        let mut watched = Watched::start(20 * MILLISECOND);
        let mut clients = watched.clients(100).await;
        let served = Cell::new(false);
        let load = join_all(clients.iter_mut().map(|client| async {
            while !served.get() {
                assert_eq!(client.get("/1").await.status, 200);
            }
        }));
        let new_clients = async {
            while watched.told.recv().await != Some(Pressure::Over) {}
            let since = Instant::now();
            let asking = (0..40).map(|_| async {
                let mut new_client = watched.server.connect().await;
                assert_eq!(new_client.get("/0").await.status, 200);
            });
            join_all(asking).await;
            served.set(true);
            since.elapsed()
        };
        let (_, elapsed) = tokio::join!(load, new_clients);
        // All at once, 40 would be served within a few rounds of the others of 100 ms each.
        assert!(elapsed >= Duration::from_secs(2), "{elapsed:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_loop_tells_how_much_it_has_to_do() {
    local(async {
        let watched = Watched::start(20 * MILLISECOND);
        let mut clients = watched.clients(7).await;
        ask(&mut clients, "/0", 9).await;
        // The loop tells with its next tick.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let status = watched.status();
        assert_eq!(status.name, "loop-0");
        assert_eq!((status.connections, status.requests), (7, 70));
        assert_eq!((status.pressure, status.rejected), (Pressure::None, 0));
        drop(watched.server);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_has_ended_is_not_shown() {
    local(async {
        let watched = Watched::start(20 * MILLISECOND);
        drop(watched.clients(1).await);
        let handle = watched.server.handle.clone();
        handle.drain();
        watched.server.ended().await;
        assert_eq!(handle.loops(), []);
    })
    .await;
}

/// Counts the rejected of 500 that all wait already when the server begins, where each takes 2 ms.
async fn refused_of_burst(limits: Limits) -> u64 {
    let bound = Server::builder()
        .loops(1.try_into().unwrap())
        .limits(limits)
        .listen(ANY_PORT)
        .bind()
        .unwrap();
    let address = tcp_address(&bound);
    let handle = bound.handle();
    let slow = app(|_| async {
        std::thread::sleep(2 * MILLISECOND);
        Ok(text("done"))
    });
    let mut clients = Vec::new();
    for _ in 0..500 {
        let mut client = Client::tcp(address).await;
        client.send(get("/")).await;
        clients.push(client);
    }
    let serving = tokio::spawn(bound.serve(slow));
    let mut refused = 0;
    for client in &mut clients {
        refused += u64::from(is_refused(client).await);
    }
    assert_eq!(only_loop(&handle).rejected, refused);
    assert_eq!(Client::tcp(address).await.get("/").await.status, 200);
    drop(clients);
    handle.drain();
    serving.await.unwrap().unwrap();
    refused
}

/// Returns `true` if the response to its request is the prepared 503.
async fn is_refused(client: &mut Client) -> bool {
    let response = client.response().await;
    if response.status != 503 {
        assert_eq!(response.text(), "done");
        return false;
    }
    assert_eq!(response.field("retry-after"), Some("1"));
    assert!(response.closes());
    assert!(client.is_closed().await);
    true
}

#[tokio::test]
async fn who_waits_to_be_accepted_for_too_long_is_refused() {
    within(async {
        let refused = refused_of_burst(Limits {
            loop_lag_max: MILLISECOND,
            loop_lag_standing: 5 * MILLISECOND,
            ..Limits::default()
        });
        let refused = refused.await;
        assert!((1..500).contains(&refused), "{refused}");
    })
    .await;
}

#[tokio::test]
async fn of_a_burst_nobody_is_refused() {
    within(async {
        let refused = refused_of_burst(Limits {
            loop_lag_max: MILLISECOND,
            loop_lag_standing: Duration::from_hours(1),
            ..Limits::default()
        });
        assert_eq!(refused.await, 0);
    })
    .await;
}
