//! Connections that end while they are idle: a request that crosses that end is served, or at least
//! not met by a reset.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_server::{Limits, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::client::{Stream, get, post};
use crate::drain::handler;
use crate::listening::{ANY_PORT, tcp_address};
use crate::over;
use crate::rig::{Rig, app, assert_elapsed, local, measure, settle, text, within};

const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(250);

fn with_grace(drain_grace: Duration) -> Limits {
    Limits {
        drain_grace,
        ..Limits::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_there_when_the_drain_begins_is_served_without_a_grace_too() {
    local(async {
        for grace in [Duration::ZERO, SECOND] {
            let server = Rig::with(app(handler), |builder| builder.limits(with_grace(grace)));
            let mut client = server.connect().await;
            assert_eq!(client.get("/").await.status, 200);
            server.handle.drain();
            // The loop learns of the drain before it learns of this.
            client.send(get("/")).await;
            let response = client.response().await;
            assert_eq!((response.text(), response.closes()), ("done", true));
            assert!(client.is_closed().await);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_within_the_grace_of_a_drain_is_served_as_the_last() {
    local(async {
        let server = Rig::start(app(handler));
        let mut used = server.connect().await;
        assert_eq!(used.get("/").await.status, 200);
        let mut new = server.connect().await;
        settle().await;
        server.handle.drain();
        for client in [&mut used, &mut new] {
            sleep(Duration::from_millis(240)).await;
            let response = client.get("/").await;
            assert_eq!((response.text(), response.closes()), ("done", true));
            assert!(client.is_closed().await);
        }
        drop((used, new));
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_grace_of_a_drain_is_a_setting() {
    local(async {
        for grace in [Duration::ZERO, TICK, 3 * SECOND] {
            let server = Rig::with(app(handler), |builder| builder.limits(with_grace(grace)));
            let mut client = server.connect().await;
            assert_eq!(client.get("/").await.status, 200);
            let since = Instant::now();
            server.handle.drain();
            assert!(client.is_closed().await);
            assert_elapsed(since, grace);
        }
    })
    .await;
}

/// Sends a request behind the end that the server has announced: how its connection ends for it.
async fn end_of_a_crossing_request(stream: &mut dyn Stream) -> std::io::Result<usize> {
    stream.write_all(get("/").as_bytes()).await?;
    stream.flush().await?;
    settle().await;
    stream.read(&mut [0; 9]).await
}

async fn idle(server: &Rig) -> Box<dyn Stream> {
    let mut stream = over::connect(&server.path).await;
    stream.write_all(get("/").as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"ok") {
        read.push(stream.read_u8().await.unwrap());
    }
    stream
}

#[tokio::test(start_paused = true)]
async fn a_request_that_crosses_the_end_of_an_idle_connection_meets_no_reset() {
    local(async {
        let limits = Limits {
            keep_alive_timeout: 5 * SECOND,
            ..Limits::default()
        };
        let server = Rig::with(app(|_| async { Ok(text("ok")) }), |builder| {
            builder.limits(limits)
        });
        let mut expired = idle(&server).await;
        sleep(6 * SECOND).await;
        let ended = end_of_a_crossing_request(&mut expired).await;
        assert_eq!(ended.unwrap(), 0, "idle for too long");

        let mut drained = idle(&server).await;
        server.handle.drain();
        sleep(SECOND).await;
        let ended = end_of_a_crossing_request(&mut drained).await;
        assert_eq!(ended.unwrap(), 0, "after a drain");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_closes_holds_up_a_drain_for_two_seconds() {
    local(async {
        let server = Rig::start(app(|_| async { Ok(text("ok")) }));
        let _stays = idle(&server).await;
        server.handle.drain();
        let since = Instant::now();
        assert_eq!(server.ended().await.aborted, []);
        assert!(since.elapsed() < 4 * SECOND, "{:?}", since.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_makes_room_serves_the_request_that_is_there() {
    local(async {
        let limits = Limits {
            connections_max: 1,
            ..Limits::default()
        };
        let server = Rig::with(app(|_| async { Ok(text("ok")) }), |builder| {
            builder.limits(limits)
        });
        let mut idle = server.connect().await;
        assert_eq!(idle.get("/").await.status, 200);
        sleep(SECOND).await;
        let mut new_client = server.connect().await;
        idle.send(get("/")).await;
        let response = idle.response().await;
        assert_eq!(response.status, 200);
        new_client.send(get("/")).await;
        assert_eq!(new_client.response().await.status, 200);
    })
    .await;
}

const CLIENTS: u32 = 1_500;

/// The outcome of the requests of many clients.
#[derive(Debug, Default)]
struct Fates {
    served: AtomicUsize,
    reset: AtomicUsize,
    without_response: AtomicUsize,
}

/// The barrier at which all clients wait for each other.
struct All {
    began: Semaphore,
    go_on: Semaphore,
}

/// Posts until a response says that it is the last, or the connection ends.
async fn post_on(address: SocketAddr, fates: Rc<Fates>, all: Rc<All>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = post("/", "Content-Length: 5\r\n") + "hello";
    let mut is_first = true;
    loop {
        match exchange(&mut stream, request.as_bytes()).await {
            Ok(None) => fates.without_response.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                assert_eq!(error, ErrorKind::ConnectionReset);
                fates.reset.fetch_add(1, Ordering::Relaxed)
            }
            Ok(Some(response)) => {
                fates.served.fetch_add(1, Ordering::Relaxed);
                if std::mem::take(&mut is_first) {
                    all.began.add_permits(1);
                    all.go_on.acquire().await.unwrap().forget();
                }
                if response.contains("onnection: close") {
                    return;
                }
                continue;
            }
        };
        return;
    }
}

/// One request and its response; none if the connection ends in order instead.
async fn exchange(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    request: &[u8],
) -> Result<Option<String>, ErrorKind> {
    let reset = |error: std::io::Error| match error.kind() {
        ErrorKind::BrokenPipe => ErrorKind::ConnectionReset,
        kind => kind,
    };
    stream.write_all(request).await.map_err(reset)?;
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n5") {
        if stream.read_buf(&mut read).await.map_err(reset)? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(String::from_utf8(read).unwrap()))
}

/// Raises the limit on open descriptors as far as it is needed, and goes.
fn allow_descriptors(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|limit| limit < current) {
        let current = Some(current);
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    }
}

/// Over TCP and on threads of the server's own. Of a client that this machine lets wait for longer
/// than the grace the connection ends, and rightly; so the grace is long here, and each client
/// comes within it. The default is tested on the paused clock, below; how it fares in real time is
/// measured (`make lab RUN=drain`).
#[tokio::test]
async fn of_1500_clients_that_post_at_a_drain_none_loses_a_request() {
    within(async {
        allow_descriptors(4 * u64::from(CLIENTS));
        let limits = Limits {
            // Clients that this machine is late for are served, not refused.
            loop_lag_max: Duration::MAX,
            drain_grace: 120 * SECOND,
            drain_deadline: 240 * SECOND,
            ..Limits::default()
        };
        let server = Server::builder()
            .listen(ANY_PORT)
            .limits(limits)
            .bind()
            .unwrap();
        let (address, handle) = (tcp_address(&server), server.handle());
        let serving = tokio::spawn(server.serve(app(measure)));
        let fates = Rc::new(Fates::default());
        let all = Rc::new(All {
            began: Semaphore::new(0),
            go_on: Semaphore::new(0),
        });
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (fates, all) = (Rc::clone(&fates), Rc::clone(&all));
                tokio::task::spawn_local(post_on(address, fates, all))
            })
            .collect();
        all.began.acquire_many(CLIENTS).await.unwrap().forget();
        all.go_on.add_permits(CLIENTS as usize);
        settle().await;
        handle.drain();
        for client in join_all(clients).await {
            client.unwrap();
        }
        let report = serving.await.unwrap().unwrap();
        assert_eq!(report.aborted, []);
        assert_eq!(fates.reset.load(Ordering::Relaxed), 0, "{fates:?}");
        assert_eq!(
            fates.without_response.load(Ordering::Relaxed),
            0,
            "{fates:?}"
        );
        assert!(fates.served.load(Ordering::Relaxed) > CLIENTS as usize);
    })
    .await;
}

/// Posts with a pause after each response, until one says that it is the last: how many were
/// served.
async fn post_with_pauses(mut stream: UnixStream, pause: Duration) -> usize {
    let request = post("/", "Content-Length: 5\r\n") + "hello";
    for served in 1.. {
        let exchanged = exchange(&mut stream, request.as_bytes()).await;
        let response = exchanged.unwrap().expect("a response");
        if response.contains("onnection: close") {
            return served;
        }
        sleep(pause).await;
    }
    unreachable!("the drain ends it")
}

/// On a clock that stands still while anybody can go on, no machine is too slow for the default
/// grace of 500 ms.
#[tokio::test(start_paused = true)]
async fn of_1500_clients_that_pause_for_less_than_the_default_grace_none_loses_a_request() {
    local(async {
        allow_descriptors(4 * u64::from(CLIENTS));
        let server = Rig::start(app(measure));
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let stream = UnixStream::connect(&server.path).await.unwrap();
            let pause = Duration::from_millis((1 + client % 499).into());
            clients.push(tokio::task::spawn_local(post_with_pauses(stream, pause)));
        }
        sleep(SECOND).await;
        server.handle.drain();
        for client in join_all(clients).await {
            assert!(client.unwrap() > 1);
        }
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}
