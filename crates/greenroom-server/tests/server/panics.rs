//! Handlers that panic: their client is told, the log names the route, and nobody else notices.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::Write;
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom_server::{App, ConnectionInfo, RequestBody};
use http::Request;
use http_body_util::BodyExt;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::client::{get, post};
use crate::rig::{Body, Reply, Rig, app, local, settle, streamed, text};

thread_local! {
    /// The log of this thread, which is the test's and its server's.
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to the log of the thread that logs.
pub(crate) struct Log;

impl Log {
    /// One subscriber for all tests: whether anybody wants an event is decided for all threads.
    pub(crate) fn capture() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::fmt().with_writer(|| Log);
            subscriber.with_ansi(false).init();
        });
    }

    #[track_caller]
    pub(crate) fn assert_line(parts: &[&str]) {
        Self::line(parts);
    }

    /// The first line that has all these parts.
    #[track_caller]
    pub(crate) fn line(parts: &[&str]) -> String {
        let log = LOGGED.with_borrow(|log| String::from_utf8(log.clone()).unwrap());
        let found = log
            .lines()
            .find(|line| parts.iter().all(|part| line.contains(part)));
        found
            .unwrap_or_else(|| panic!("no line with {parts:?} in:\n{log}"))
            .to_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.with_borrow_mut(|log| log.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "from drop");
    }
}

async fn handler(request: Request<RequestBody>) -> Reply {
    match request.uri().path() {
        "/at-once" => panic!("at once"),
        "/later" => {
            yield_now().await;
            panic!("later")
        }
        "/in-body" => {
            let parts = stream::iter(["some"]).map(|some| Ok(http_body::Frame::data(some.into())));
            Ok(streamed(
                parts.chain(stream::poll_fn(|_| panic!("in body"))),
            ))
        }
        "/in-drop" => {
            let _kept = PanicsWhenDropped;
            std::future::pending().await
        }
        _ => Ok(text("fine")),
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_is_500_and_its_route_is_logged() {
    Log::capture();
    local(async {
        let server = Rig::start(app(handler));
        let mut other = server.connect().await;
        assert_eq!(other.get("/").await.text(), "fine");
        for path in ["/at-once", "/later"] {
            let mut client = server.connect().await;
            let response = client.get(&format!("{path}?secret=1")).await;
            assert_eq!(response.status, 500);
            assert!(response.closes());
            assert!(
                !response.text().contains("later"),
                "the message is not for clients"
            );
            assert!(client.is_closed().await);
            assert_eq!(other.get("/").await.text(), "fine");
        }
        Log::assert_line(&["ERROR", "a handler panicked", "at once", "GET /at-once"]);
        Log::assert_line(&["ERROR", "a handler panicked", "later", "GET /later"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_after_a_request_with_a_body_is_500_too() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client
            .send(post("/later", "Content-Length: 100000\r\n"))
            .await;
        client.send(vec![b'b'; 100_000]).await;
        assert_eq!(client.response().await.status, 500);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_panics_is_aborted_and_its_route_is_logged() {
    Log::capture();
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/in-body")).await;
        assert_eq!(client.head().await.0, 200);
        let rest = String::from_utf8(client.rest().await).unwrap();
        assert!(
            rest.starts_with("4\r\nsome") && !rest.contains("\r\n0\r\n"),
            "{rest:?}"
        );
        Log::assert_line(&["ERROR", "panicked", "in body", "GET /in-body"]);
        assert_eq!(server.connect().await.get("/").await.text(), "fine");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_destructor_that_panics_when_the_client_leaves_harms_nobody() {
    Log::capture();
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(get("/in-drop")).await;
        settle().await;
        drop(client);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(server.connect().await.get("/").await.text(), "fine");
        Log::assert_line(&["ERROR", "panicked", "from drop", "GET /in-drop"]);
    })
    .await;
}

/// A future that is ready, and panics when it is dropped.
struct Ready(Option<Reply>, PanicsWhenDropped);

impl Future for Ready {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Reply> {
        Poll::Ready(self.0.take().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn a_destructor_that_panics_after_the_response_does_not_end_the_loop() {
    local(async {
        let server = Rig::start(app(|_| Ready(Some(Ok(text("fine"))), PanicsWhenDropped)));
        for _ in 0..3 {
            let mut client = server.connect().await;
            client.send(get("/")).await;
            client.rest().await;
        }
        // Whoever is accepted later is still served, whatever became of these.
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert!(!client.rest().await.is_empty());
    })
    .await;
}

/// An application that fails before there is a service.
#[derive(Clone)]
struct Unconnectable;

impl App for Unconnectable {
    type Body = Body;
    type Service = tower::util::BoxCloneSyncService<
        Request<RequestBody>,
        http::Response<Body>,
        greenroom_server::BoxError,
    >;

    fn connect(&self, info: &ConnectionInfo) -> Self::Service {
        panic!("no service for {info:?}")
    }
}

#[tokio::test(start_paused = true)]
async fn an_application_without_a_service_for_a_connection_closes_it_and_goes_on() {
    local(async {
        let server = Rig::start(Unconnectable);
        for _ in 0..3 {
            let mut client = server.connect().await;
            assert!(client.is_closed().await);
        }
        server.handle.drain();
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_panics_before_it_is_ready_is_500() {
    #[derive(Clone)]
    struct Unready;
    impl tower::Service<Request<RequestBody>> for Unready {
        type Response = http::Response<Body>;
        type Error = greenroom_server::BoxError;
        type Future = std::future::Pending<Reply>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            panic!("not ready")
        }

        fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
            std::future::pending()
        }
    }
    local(async {
        let server = Rig::start(greenroom_server::SharedService(Unready));
        assert_eq!(server.connect().await.get("/").await.status, 500);
        assert_eq!(server.connect().await.get("/").await.status, 500);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_application_is_500_and_logged() {
    Log::capture();
    local(async {
        let server = Rig::start(app(|_| {
            poll_fn(|_| Poll::Ready(Err("the database is gone".into())))
        }));
        let response = server.connect().await.get("/users").await;
        assert_eq!(response.status, 500);
        assert!(!response.text().contains("database"));
        Log::assert_line(&["ERROR", "the database is gone", "GET /users"]);
    })
    .await;
}

/// A body that does not know how long it is.
struct Unmeasurable;

impl http_body::Body for Unmeasurable {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        panic!("of the size")
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_whose_size_panics_is_500_and_its_route_is_logged() {
    Log::capture();
    local(async {
        let server = Rig::start(app(|_| async {
            let body = Unmeasurable.map_err(|never| match never {});
            Ok(http::Response::new(body.boxed_unsync()))
        }));
        let response = server.connect().await.get("/unmeasurable").await;
        assert_eq!(response.status, 500);
        Log::assert_line(&["ERROR", "panicked", "of the size", "GET /unmeasurable"]);
    })
    .await;
}
