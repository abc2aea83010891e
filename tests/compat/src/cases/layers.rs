//! Layers of tower and tower-http, and middleware of axum.

use std::convert::Infallible;
use std::sync::{Arc, Once};
use std::time::Duration;

use axum::body::Body;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{Path, Request};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get as on_get, post};
use axum::{BoxError, Router};
use bytes::Bytes;
use futures_util::stream;
use tower::ServiceBuilder;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tracing::{Instrument, Span};
use tracing_subscriber::filter::LevelFilter;

use crate::harness::Step::{Connect, End, Note, Release, Response as Read};
use crate::harness::{App, Case, Rig, Step, ask, get};

pub(crate) fn cases() -> Vec<Case> {
    [of_requests(), of_responses(), of_time()]
        .into_iter()
        .flatten()
        .collect()
}

fn of_requests() -> Vec<Case> {
    let preflight = &[
        "Origin: http://b.test",
        "Access-Control-Request-Method: PUT",
        "Access-Control-Request-Headers: x-a",
    ][..];
    vec![
        Case::asking(
            "layers/trace",
            App::Router(traced),
            [get("/span"), get("/spawned"), get("/body")],
        ),
        Case::asking(
            "layers/request-id",
            App::Router(identified),
            [get("/"), ask("GET /", &["x-request-id: mine"], "")],
        ),
        Case::asking(
            "layers/cors",
            App::Router(cors),
            [
                ask("OPTIONS /", preflight, ""),
                ask("GET /", &["Origin: http://b.test"], ""),
                get("/"),
                ask("OPTIONS /nothing", preflight, ""),
                ask("DELETE /", &["Origin: http://b.test"], ""),
            ],
        ),
        Case::asking(
            "layers/middleware",
            App::Router(with_middleware),
            [
                get("/"),
                ask("GET /", &["x-stop: yes"], ""),
                ask("POST /", &[], "body"),
                get("/nothing"),
            ],
        ),
    ]
}

/// Installs a subscriber: spans exist only if one looks at them.
fn look_at_spans() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::DEBUG)
            .with_writer(std::io::sink)
            .init();
    });
}

fn span() -> &'static str {
    Span::current()
        .metadata()
        .map_or("no span", |metadata| metadata.name())
}

fn traced(_: Rig) -> Router {
    look_at_spans();
    let spawned = || async {
        let spawned = tokio::spawn(async { span() }.in_current_span());
        format!("{} {}", span(), spawned.await.unwrap())
    };
    let waited = || async {
        let before = span();
        tokio::time::sleep(Duration::from_millis(1)).await;
        format!("{before} {}", span())
    };
    let body = || async {
        let spans = (0..2).map(|_| Ok::<_, Infallible>(span()));
        Body::from_stream(stream::iter(spans))
    };
    Router::new()
        .route("/span", on_get(waited))
        .route("/spawned", on_get(spawned))
        .route("/body", on_get(body))
        .layer(TraceLayer::new_for_http())
}

#[derive(Clone)]
struct Fixed;

impl MakeRequestId for Fixed {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        Some(RequestId::new(HeaderValue::from_static("made")))
    }
}

fn identified(_: Rig) -> Router {
    let name = HeaderName::from_static("x-request-id");
    let told = |request: Request| async move {
        let id = request.extensions().get::<RequestId>().unwrap();
        id.header_value().to_str().unwrap().to_owned()
    };
    let layers = ServiceBuilder::new()
        .layer(SetRequestIdLayer::new(name.clone(), Fixed))
        .layer(PropagateRequestIdLayer::new(name));
    Router::new().route("/", on_get(told)).layer(layers)
}

fn cors(_: Rig) -> Router {
    let cors = CorsLayer::new()
        .allow_origin(HeaderValue::from_static("http://b.test"))
        .allow_methods([Method::GET, Method::PUT])
        .allow_headers([HeaderName::from_static("x-a")])
        .max_age(Duration::from_mins(1));
    Router::new()
        .route("/", on_get(|| async { "hello" }).put(|| async { "put" }))
        .layer(cors)
}

fn with_middleware(_: Rig) -> Router {
    let around = middleware::from_fn(|request: Request, next: Next| async move {
        if request.headers().contains_key("x-stop") {
            return (StatusCode::FORBIDDEN, "stopped").into_response();
        }
        let mut response = next.run(request).await;
        let value = HeaderValue::from_static("around");
        response.headers_mut().insert("x-around", value);
        response
    });
    let body = middleware::map_request(|request: Request| async move {
        request.map(|_| Body::from("another body"))
    });
    let mapped =
        middleware::map_response(
            |response: Response| async move { ([("x-mapped", "yes")], response) },
        );
    Router::new()
        .route("/", on_get(|| async { "hello" }))
        .route("/", post(|body: Bytes| async move { body }).layer(body))
        .layer(mapped)
        .layer(around)
}

fn of_responses() -> Vec<Case> {
    let gzip = &["Accept-Encoding: gzip"];
    vec![
        Case::asking(
            "layers/compression",
            App::Router(compressed),
            [
                ask("GET /text", gzip, ""),
                ask("GET /stream", gzip, ""),
                ask("GET /short", gzip, ""),
                ask("GET /image", gzip, ""),
                ask("HEAD /text", gzip, ""),
                get("/text"),
            ],
        ),
        Case::asking(
            "layers/catch-panic",
            App::Router(caught),
            [get("/"), get("/late"), get("/fine")],
        ),
        Case::asking(
            "layers/set-header",
            App::Router(set_header),
            [get("/"), get("/nothing")],
        ),
    ]
}

fn compressed(_: Rig) -> Router {
    let text = || async { "a line of text that is worth compressing\n".repeat(1_000) };
    let parts = || async {
        let part = Ok::<_, Infallible>("a part of a text that is worth compressing\n".repeat(100));
        (
            [("content-type", "text/plain")],
            Body::from_stream(stream::iter(vec![part; 3])),
        )
    };
    Router::new()
        .route("/text", on_get(text))
        .route("/stream", on_get(parts))
        .route("/short", on_get(|| async { "short" }))
        .route(
            "/image",
            on_get(|| async { ([("content-type", "image/png")], vec![7_u8; 5_000]) }),
        )
        .layer(CompressionLayer::new())
}

fn caught(_: Rig) -> Router {
    let late = || async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        fail()
    };
    Router::new()
        .route("/", on_get(|| async { fail() }))
        .route("/late", on_get(late))
        .route("/fine", on_get(|| async { "fine" }))
        .layer(CatchPanicLayer::new())
}

fn fail() -> &'static str {
    panic!("caught by its layer")
}

fn set_header(_: Rig) -> Router {
    let server = HeaderValue::from_static("compat");
    Router::new()
        .route("/", on_get(|| async { "hello" }))
        .layer(SetResponseHeaderLayer::overriding(
            axum::http::header::SERVER,
            server,
        ))
}

/// Layers that refuse requests that take too long, or are too many at a time.
fn of_time() -> Vec<Case> {
    vec![
        Case::asking(
            "layers/timeout",
            App::Router(timed),
            [get("/never"), get("/soon")],
        ),
        Case::steps("layers/load-shed", App::Router(shedding), one_too_many()),
        Case::steps(
            "layers/load-shed-of-a-make-service",
            App::MakeService(shedding),
            one_too_many(),
        ),
        Case::asking("layers/error", App::Router(failing), [get("/"), get("/")]),
    ]
}

/// A request while another one, on a connection of its own, is under way.
fn one_too_many() -> Vec<Step> {
    vec![get("/wait"), Note, Connect, get("/now"), Read, Release, End]
}

fn timed(_: Rig) -> Router {
    let never = || async {
        std::future::pending::<()>().await;
        "never"
    };
    let timeout =
        TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_millis(50));
    Router::new()
        .route("/never", on_get(never).layer(timeout))
        .route("/soon", on_get(|| async { "soon" }))
}

fn shedding(rig: Rig) -> Router {
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(|error: BoxError| async move {
            (StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        }))
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(1));
    let handler = move |Path(word): Path<String>| async move {
        if word == "wait" {
            rig.note("begun");
            rig.released().await;
        }
        "done"
    };
    Router::new()
        .route("/{word}", on_get(handler))
        .layer(layers)
}

fn failing(_: Rig) -> Router {
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let service = tower::service_fn(move |_: Request| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move { Err::<Response, _>(BoxError::from(format!("failure {number}"))) }
    });
    let layers = ServiceBuilder::new().layer(HandleErrorLayer::new(|error: BoxError| async move {
        (StatusCode::BAD_GATEWAY, error.to_string())
    }));
    Router::new().route_service("/", layers.service(service))
}
