//! The end of a server: what is under way is finished, for as long as the deadline allows.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use greenroom_server::{Limits, RequestBody, RequestHandle, Server};
use http::Request;
use http_body::Frame;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep};

use crate::client::{Client, get};
use crate::listening::{ANY_PORT, tcp_address};
use crate::rig::{Reply, Rig, app, assert_elapsed, local, settle, streamed, text, within};

const SECOND: Duration = Duration::from_secs(1);

/// `/5` responds after 5 s, `/stream` with a part a second for 5 s, `/never` not at all, `/notice`
/// with a part when it is told of the drain, and `/told` then, too.
pub(crate) async fn handler(request: Request<RequestBody>) -> Reply {
    match request.uri().path() {
        "/never" => std::future::pending().await,
        "/notice" => {
            let draining = RequestHandle::current().unwrap().draining();
            let last = draining.map(|()| Ok(Frame::data(Bytes::from_static(b"the last"))));
            Ok(streamed(last.into_stream()))
        }
        "/told" => {
            let draining = RequestHandle::current().unwrap().draining();
            assert!(!draining.is_draining());
            draining.clone().await;
            assert!(draining.is_draining());
            Ok(text("told"))
        }
        "/stream" => {
            let parts = stream::iter(0..5).then(|_| async {
                sleep(SECOND).await;
                Ok(Frame::data(Bytes::from_static(b"part")))
            });
            Ok(streamed(parts))
        }
        path => {
            let seconds = path[1..].parse().unwrap_or(0);
            sleep(seconds * SECOND).await;
            Ok(text("done"))
        }
    }
}

async fn asking(server: &Rig, path: &str) -> Client {
    let mut client = server.connect().await;
    client.send(get(path)).await;
    settle().await;
    client
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_finished_and_the_rest_is_closed_soon() {
    local(async {
        let server = Rig::start(app(handler));
        let mut idle = server.connect().await;
        assert_eq!(idle.get("/").await.status, 200);
        let mut silent = server.connect().await;
        let mut busy = asking(&server, "/5").await;
        let mut streaming = asking(&server, "/stream").await;
        sleep(SECOND / 2).await;

        server.handle.drain();
        let since = Instant::now();
        assert!(idle.is_closed().await);
        assert!(silent.is_closed().await);
        assert!(since.elapsed() < SECOND);
        assert!(UnixStream::connect(&server.path).await.is_err());

        let response = busy.response().await;
        assert_eq!((response.status, response.text()), (200, "done"));
        assert!(response.closes());
        assert!(busy.is_closed().await);
        assert_eq!(streaming.response().await.text(), "partpartpartpartpart");
        assert!(streaming.is_closed().await);
        drop((idle, silent, busy, streaming));
        assert_eq!(server.ended().await.aborted, []);
        assert!(since.elapsed() < 6 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_begun_to_arrive_is_served() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        let (half, rest) = ("GET /1 HTTP/1.1\r\nHo", "st: test\r\n\r\n");
        client.send(half).await;
        settle().await;
        server.handle.drain();
        settle().await;
        client.send(rest).await;
        let response = client.response().await;
        assert_eq!((response.text(), response.closes()), ("done", true));
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_next_request_of_a_connection_is_not_served() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/1") + &get("/2")).await;
        settle().await;
        server.handle.drain();
        assert!(client.response().await.closes());
        assert!(client.is_closed().await);
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn after_30_s_the_rest_is_aborted_and_named() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = asking(&server, "/never?secret=1").await;
        sleep(4 * SECOND).await;
        server.handle.drain();
        let since = Instant::now();
        assert!(client.is_closed().await);
        assert_elapsed(since, 30 * SECOND);
        let report = server.ended().await;
        let [cut] = &report.aborted[..] else {
            panic!("{report:?}")
        };
        assert_eq!((cut.route.as_str(), cut.peer), ("GET /never", None));
        assert!((33..=35).contains(&cut.age.as_secs()), "{:?}", cut.age);
        let said = cut.to_string();
        assert!(said.starts_with("GET /never after 3"), "{said}");
    })
    .await;
}

#[tokio::test]
async fn whoever_is_disconnected_is_named_by_address() {
    within(async {
        let server = Server::builder()
            .listen(ANY_PORT)
            .limits(Limits {
                drain_deadline: Duration::from_millis(300),
                ..Limits::default()
            })
            .bind()
            .unwrap();
        let address = tcp_address(&server);
        let handle = server.handle();
        let serving = tokio::spawn(server.serve(app(handler)));
        let stream = TcpStream::connect(address).await.unwrap();
        let peer = stream.local_addr().unwrap();
        let mut client = Client::over(stream);
        client.send(get("/") + &get("/never")).await;
        assert_eq!(client.response().await.status, 200);
        handle.drain();
        let report = serving.await.unwrap().unwrap();
        let peers: Vec<_> = report.aborted.iter().map(|cut| cut.peer).collect();
        assert_eq!(peers, [Some(peer)]);
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn abort_ends_at_once_even_during_a_drain() {
    local(async {
        for drained_before in [false, true] {
            let server = Rig::start(app(handler));
            let mut client = asking(&server, "/never").await;
            let since = Instant::now();
            if drained_before {
                server.handle.drain();
                sleep(3 * SECOND).await;
                server.handle.drain();
            }
            server.handle.abort();
            assert!(client.is_closed().await);
            assert_eq!(server.ended().await.aborted.len(), 1);
            assert!(since.elapsed() < 4 * SECOND);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_future_is_dropped_ends_at_once() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = asking(&server, "/never").await;
        server.serving.abort();
        let since = Instant::now();
        assert!(client.is_closed().await);
        assert!(since.elapsed() < SECOND);
        assert!(UnixStream::connect(&server.path).await.is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_full_drains_too() {
    local(async {
        let limits = Limits {
            connections_max: 1,
            ..Limits::default()
        };
        let server = Rig::with(app(handler), |builder| builder.limits(limits));
        let mut busy = asking(&server, "/never").await;
        let _waiting = asking(&server, "/").await;
        sleep(SECOND).await;
        server.handle.drain();
        let since = Instant::now();
        assert!(busy.is_closed().await);
        assert_elapsed(since, 30 * SECOND);
        assert_eq!(server.ended().await.aborted.len(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_connections_drains_at_once() {
    local(async {
        let server = Rig::start(app(handler));
        settle().await;
        server.handle.drain();
        let since = Instant::now();
        assert_eq!(server.ended().await.aborted, []);
        assert!(since.elapsed() < SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn handlers_that_ask_are_told_and_end_at_once() {
    local(async {
        let server = Rig::start(app(handler));
        let mut told = asking(&server, "/told").await;
        let mut streaming = asking(&server, "/notice").await;
        assert_eq!(streaming.head().await.0, 200);
        sleep(60 * SECOND).await;
        server.handle.drain();
        let since = Instant::now();
        let response = told.response().await;
        assert_eq!((response.text(), response.closes()), ("told", true));
        let rest = String::from_utf8(streaming.rest().await).unwrap();
        assert!(
            rest.contains("the last") && rest.ends_with("0\r\n\r\n"),
            "{rest}"
        );
        drop((told, streaming));
        assert_eq!(server.ended().await.aborted, []);
        assert!(since.elapsed() < SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_during_the_drain_is_told_at_once() {
    local(async {
        let server = Rig::start(app(|_| async {
            let draining = RequestHandle::current().unwrap().draining();
            Ok(text(draining.is_draining().to_string()))
        }));
        let mut client = server.connect().await;
        let (half, rest) = ("GET /1 HTTP/1.1\r\nHo", "st: test\r\n\r\n");
        client.send(half).await;
        settle().await;
        server.handle.drain();
        settle().await;
        client.send(rest).await;
        assert_eq!(client.response().await.text(), "true");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn servers_on_one_thread_tell_their_own_handlers() {
    local(async {
        let (one, other) = (Rig::start(app(handler)), Rig::start(app(handler)));
        let mut asked_one = asking(&one, "/told").await;
        let mut asked_other = asking(&other, "/told").await;
        other.handle.drain();
        assert_eq!(asked_other.response().await.text(), "told");
        assert_eq!(other.ended().await.aborted, []);
        sleep(SECOND).await;
        one.handle.drain();
        assert_eq!(asked_one.response().await.text(), "told");
    })
    .await;
}
