//! The kinds of application that `serve` takes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{ConnectInfo, Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use greenroom::{App, BoxError, ConnectionInfo, RequestBody, RequestHandle};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tower_service::Service;

use crate::rig::{Rig, any_port, ask, exchange, get as fetch, http1, within};

fn router() -> Router {
    Router::new()
        .route("/hello", get(|| async { "Hello, world!" }))
        .route("/panic", get(|| async { panic!("in a handler") as &str }))
        .route("/user/{id}", get(|Path(id): Path<u32>| async move { (id + 1).to_string() }))
        .route("/sum", post(|Json(numbers): Json<Vec<i64>>| async move {
            numbers.iter().sum::<i64>().to_string()
        }))
}

#[tokio::test]
async fn a_router() {
    within(async {
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async { greenroom::serve(listener, router()).await });
        let url = |path: &str| format!("http://{address}{path}");
        assert_eq!(
            fetch(url("/hello")).await,
            (StatusCode::OK, "Hello, world!".into())
        );
        assert_eq!(fetch(url("/user/41")).await.1, "42");
        assert_eq!(fetch(url("/user/x")).await.0, 400);
        assert_eq!(fetch(url("/nowhere")).await.0, 404);
        let sum = Request::post(url("/sum")).header("content-type", "application/json");
        let sum = sum
            .body(Full::new(Bytes::from_static(b"[1, 2, 39]")))
            .unwrap();
        assert_eq!(ask(&http1(), sum).await.1, "42");
        serving.abort();
        let _cancelled = serving.await;
        // The loops end on threads of their own, soon after.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_router_with_state_from_another_runtime() {
    within(async {
        let state = Arc::new(Notify::new());
        let wait = |State(state): State<Arc<Notify>>| async move {
            state.notified().await;
            "notified"
        };
        let app = Router::new()
            .route("/", get(wait))
            .with_state(Arc::clone(&state));
        let server = Rig::start(app);
        let asked = tokio::spawn(fetch(server.url("/")));
        state.notify_one();
        assert_eq!(asked.await.unwrap().1, "notified");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_make_service_with_connect_info() {
    within(async {
        let app = Router::new()
            .route(
                "/",
                get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() }),
            )
            .into_make_service_with_connect_info::<SocketAddr>();
        let server = Rig::start(app);
        let stream = TcpStream::connect(server.address).await.unwrap();
        let peer = stream.local_addr().unwrap().to_string();
        drop(stream);
        let said = exchange(
            server.address,
            b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
        )
        .await;
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        let host = peer.split(':').next().unwrap();
        assert!(said.contains(&format!("\r\n\r\n{host}:")), "{said}");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_make_service() {
    within(async {
        let server = Rig::start(router().into_make_service());
        assert_eq!(fetch(server.url("/hello")).await.1, "Hello, world!");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_tower_service() {
    within(async {
        let app = tower::service_fn(|request: Request<Body>| async move {
            let path = request.uri().path().to_owned();
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(path))))
        });
        let server = Rig::start(app);
        assert_eq!(fetch(server.url("/any/path")).await.1, "/any/path");
        server.end().await;
    })
    .await;
}

/// Responds to each request with the address that its connection came to, and the number of the
/// body's bytes that came.
#[derive(Clone)]
struct Informed;

#[derive(Clone)]
struct InformedOf(String);

impl App for Informed {
    type Body = Full<Bytes>;
    type Service = InformedOf;

    fn connect(&self, info: &ConnectionInfo) -> InformedOf {
        InformedOf(info.local.to_string())
    }
}

impl Service<Request<RequestBody>> for InformedOf {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let local = self.0.clone();
        // Not `Send`, as the responses of an `App` need not be.
        let local = Rc::new(local);
        Box::pin(async move {
            let hints = HeaderMap::new();
            let handle = RequestHandle::current().ok_or("no request is under way")?;
            handle.send_informational(StatusCode::EARLY_HINTS, &hints)?;
            let body = request.into_body().collect().await?.to_bytes();
            Ok(Response::new(Full::from(format!("{local} {}", body.len()))))
        })
    }
}

#[tokio::test]
async fn an_app_of_the_server_below() {
    within(async {
        let server = Rig::start(Informed);
        let request =
            b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        let response = exchange(server.address, request).await;
        let (hint, response) = response.split_once("\r\n\r\n").unwrap();
        assert_eq!(hint, "HTTP/1.1 103 Early Hints");
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        let body = format!("\r\n\r\n{} 5", server.address);
        assert!(response.ends_with(&body), "{response}");
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_app_by_the_function_serve() {
    within(async {
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async { greenroom::serve(listener, Informed).await });
        let (status, said) = fetch(format!("http://{address}/")).await;
        assert_eq!((status, said), (StatusCode::OK, format!("{address} 0")));
        serving.abort();
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_panics_is_500() {
    within(async {
        let server = Rig::start(router());
        assert_eq!(fetch(server.url("/panic")).await.0, 500);
        assert_eq!(fetch(server.url("/hello")).await.0, 200);
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn graceful_shutdown_finishes_what_is_under_way() {
    within(async {
        let begun = Arc::new(Notify::new());
        let go_on = Arc::new(Notify::new());
        let (tell, told) = oneshot::channel::<()>();
        let states = (Arc::clone(&begun), Arc::clone(&go_on));
        let wait = |State((begun, go_on)): State<(Arc<Notify>, Arc<Notify>)>| async move {
            begun.notify_one();
            go_on.notified().await;
            "finished"
        };
        let app = Router::new().route("/", get(wait)).with_state(states);
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = greenroom::serve(listener, app).with_graceful_shutdown(async {
            told.await.unwrap();
        });
        let serving = tokio::spawn(serve.report());
        let asked = tokio::spawn(async move {
            exchange(address, b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await
        });
        begun.notified().await;
        tell.send(()).unwrap();
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(!serving.is_finished());
        go_on.notify_one();
        // Whole, and then the end of the connection.
        let response = asked.await.unwrap();
        assert!(response.ends_with("finished"), "{response}");
        assert_eq!(serving.await.unwrap().unwrap().aborted, []);
    })
    .await;
}

#[tokio::test]
async fn blocking_work_of_a_request_that_is_aborted_does_not_hold_up_the_end() {
    within(async {
        let (begun, mut begins) = mpsc::channel(1);
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let stuck = move || async move {
            begun.send(()).await.unwrap();
            let wait = move || released.lock().unwrap().recv().is_err();
            tokio::task::spawn_blocking(wait).await.unwrap().to_string()
        };
        let server = Rig::start(Router::new().route("/stuck", get(stuck)));
        let mut client = TcpStream::connect(server.address).await.unwrap();
        client
            .write_all(b"GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        begins.recv().await.unwrap();
        server.handle.abort();
        let report = server.end().await;
        assert_eq!(report.aborted.len(), 1);
        assert_eq!(report.aborted[0].route, "GET /stuck");
        drop(release);
    })
    .await;
}
