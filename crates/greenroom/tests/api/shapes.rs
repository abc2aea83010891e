//! Every shape of application is placed: a handler that blocks holds up no other.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::thread;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::handler::HandlerWithoutStateExt;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any_service, get};
use axum::{Extension, ServiceExt};
use greenroom::{ConnectionInfo, IncomingConnection, IntoApp, Placed, Placement, RouteStatus};
use http::{HeaderValue, StatusCode, header};
use tower::{Layer, ServiceBuilder, service_fn};
use tower_http::normalize_path::{NormalizePath, NormalizePathLayer};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::gate::Gate;
use crate::rig::{Rig, get as fetch, within};

/// Serves this; while `block` blocks, `hello` says hello. Returns the routes of the status.
async fn holds_up_nobody<A, Kind>(app: A, gate: &Gate, hello: &str, block: &str) -> Vec<RouteStatus>
where
    A: IntoApp<Kind> + Send + 'static,
    Kind: 'static,
{
    within(async {
        let rig = Rig::start(app);
        let blocked = gate.fill(&rig.url(block)).await;
        for _ in 0..20 {
            let said = fetch(rig.url(hello)).await;
            assert_eq!(said, (StatusCode::OK, "hello".into()));
        }
        gate.open().await;
        blocked.all_served().await;
        let routes = rig.handle.status().routes;
        rig.end().await;
        routes
    })
    .await
}

/// True if the route of this path is among them, and nothing of it ran on a loop.
fn is_told_apart(routes: &[RouteStatus], path: &str) -> bool {
    let mut named = routes.iter().filter(|route| route.path == path);
    named.any(|route| route.method == "GET" && route.placed == Placed::AutoStaged)
}

/// Responds to `/…hello` and `/…block` with any path before.
fn by_path(gate: &Gate, request: &Request) -> Response {
    if request
        .uri()
        .path()
        .trim_end_matches('/')
        .ends_with("hello")
    {
        "hello".into_response()
    } else {
        gate.block().into_response()
    }
}

fn blocking(gate: &Gate) -> impl Fn() -> std::future::Ready<&'static str> + Clone + use<> {
    let gate = gate.clone();
    move || ready(gate.block())
}

/// A router of two routes below this path.
fn router(below: &str, gate: &Gate) -> Router {
    let gate = gate.clone();
    Router::new()
        .route(&format!("{below}/hello"), get(|| async { "hello" }))
        .route(
            &format!("{below}/block/{{id}}"),
            get(move || async move { gate.block() }),
        )
}

fn assert_told_apart(routes: &[RouteStatus], below: &str) {
    for path in ["hello", "block/{id}"] {
        let path = format!("{below}/{path}");
        assert!(routes.iter().any(|route| route.path == path), "{path}");
    }
    assert!(is_told_apart(routes, &format!("{below}/block/{{id}}")));
}

#[tokio::test]
async fn a_router_and_its_make_service() {
    let gate = Gate::default();
    let app = router("/bare", &gate);
    let routes = holds_up_nobody(app, &gate, "/bare/hello", "/bare/block/1").await;
    assert_told_apart(&routes, "/bare");

    let gate = Gate::default();
    let app = router("/made", &gate).into_make_service();
    let routes = holds_up_nobody(app, &gate, "/made/hello", "/made/block/1").await;
    assert_told_apart(&routes, "/made");
}

#[tokio::test]
async fn a_router_that_is_told_who_is_connected() {
    let gate = Gate::default();
    let app = router("/told", &gate).into_make_service_with_connect_info::<SocketAddr>();
    let routes = holds_up_nobody(app, &gate, "/told/hello", "/told/block/1").await;
    assert_told_apart(&routes, "/told");
}

#[derive(Clone)]
struct Peer {
    port: u16,
    local: String,
}

impl Connected<IncomingConnection> for Peer {
    fn connect_info(connection: IncomingConnection) -> Self {
        Self {
            port: connection.peer().map_or(0, |peer| peer.port()),
            local: connection.local().to_string(),
        }
    }
}

#[tokio::test]
async fn a_router_that_is_told_by_a_type_of_its_own() {
    let gate = Gate::default();
    let app = router("/peer", &gate).into_make_service_with_connect_info::<Peer>();
    let routes = holds_up_nobody(app, &gate, "/peer/hello", "/peer/block/1").await;
    assert_told_apart(&routes, "/peer");
}

/// As an extractor, as an extension, and in a middleware; on a stage and on a loop.
#[tokio::test]
async fn who_is_connected_arrives() {
    within(async {
        let told = get(
            |ConnectInfo(peer): ConnectInfo<Peer>,
             Extension(extension): Extension<ConnectInfo<Peer>>,
             request: Request| async move {
                assert_eq!(extension.0.port, peer.port);
                let seen = request.extensions().get::<u16>();
                assert_eq!(seen, Some(&peer.port));
                assert_ne!(peer.port, 0);
                let thread = thread::current();
                format!("{} {}", peer.local, thread.name().unwrap_or_default())
            },
        );
        let seen = middleware::from_fn(
            |ConnectInfo(peer): ConnectInfo<Peer>, mut request: Request, next: Next| async move {
                request.extensions_mut().insert(peer.port);
                next.run(request).await
            },
        );
        let app = Router::new().route("/who/peer", told).layer(seen);
        // Its first request is on a stage, as any; the second on a loop.
        let app = app.layer(Placement::inline());
        let rig = Rig::start(app.into_make_service_with_connect_info::<Peer>());
        for thread in ["stage-", "loop-"] {
            let (status, said) = fetch(rig.url("/who/peer")).await;
            assert_eq!(status, StatusCode::OK);
            let (local, ran) = said.split_once(' ').unwrap();
            assert_eq!(local, rig.address.to_string());
            assert!(ran.starts_with(thread), "{ran}");
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn method_routers() {
    // One path may be told from another by its first segment, and by nothing else.
    let method_router = |gate: &Gate| {
        let gate = gate.clone();
        get(move |request: Request| async move { by_path(&gate, &request) })
    };
    let (gate, hello, block) = (Gate::default(), "/method-hello", "/method-block");
    let routes = holds_up_nobody(method_router(&gate), &gate, hello, block).await;
    assert!(is_told_apart(&routes, block));
    let gate = Gate::default();
    let app = method_router(&gate).into_make_service();
    holds_up_nobody(app, &gate, hello, block).await;
    let gate = Gate::default();
    let app = method_router(&gate).into_make_service_with_connect_info::<SocketAddr>();
    holds_up_nobody(app, &gate, hello, block).await;
}

#[tokio::test]
async fn handler_services() {
    let handler = |gate: &Gate| {
        let gate = gate.clone();
        move |request: Request| async move { by_path(&gate, &request) }
    };
    let (gate, hello, block) = (Gate::default(), "/handler-hello", "/handler-block");
    let routes = holds_up_nobody(handler(&gate).into_service(), &gate, hello, block).await;
    assert!(is_told_apart(&routes, block));
    let gate = Gate::default();
    let app = handler(&gate).into_make_service();
    holds_up_nobody(app, &gate, hello, block).await;
    let gate = Gate::default();
    let app = handler(&gate).into_make_service_with_connect_info::<Peer>();
    holds_up_nobody(app, &gate, hello, block).await;
}

#[tokio::test]
async fn a_router_behind_a_path_that_is_made_normal() {
    let flat = |gate: &Gate| {
        Router::new()
            .route("/normal-hello", get(|| async { "hello" }))
            .route("/normal-block", get(blocking(gate)))
    };
    let (hello, block) = ("/normal-hello/", "/normal-block/");
    let gate = Gate::default();
    let app = NormalizePath::trim_trailing_slash(flat(&gate));
    let routes = holds_up_nobody(app, &gate, hello, block).await;
    assert!(is_told_apart(&routes, "/normal-block"));
    let layer = NormalizePathLayer::trim_trailing_slash();
    let gate = Gate::default();
    let app = ServiceExt::<Request>::into_make_service(layer.layer(flat(&gate)));
    holds_up_nobody(app, &gate, hello, block).await;
    let gate = Gate::default();
    let app = ServiceExt::<Request>::into_make_service_with_connect_info::<SocketAddr>(
        layer.layer(flat(&gate)),
    );
    holds_up_nobody(app, &gate, hello, block).await;
}

#[tokio::test]
async fn layers_around_a_router() {
    let gate = Gate::default();
    let flat = Router::new()
        .route("/layer-hello", get(|| async { "hello" }))
        .route("/layer-block", get(blocking(&gate)));
    let server = HeaderValue::from_static("greenroom");
    let app = ServiceBuilder::new()
        .layer(SetResponseHeaderLayer::overriding(header::SERVER, server))
        .layer(NormalizePathLayer::trim_trailing_slash())
        .service(flat);
    let routes = holds_up_nobody(app, &gate, "/layer-hello", "/layer-block").await;
    assert!(is_told_apart(&routes, "/layer-block"));
}

#[tokio::test]
async fn services_of_a_function() {
    let gate = Gate::default();
    let service = |gate: &Gate| {
        let gate = gate.clone();
        service_fn(move |request: Request| {
            let gate = gate.clone();
            async move { Ok::<_, Infallible>(by_path(&gate, &request)) }
        })
    };
    let (hello, block) = ("/function-hello", "/function-block");
    let routes = holds_up_nobody(service(&gate), &gate, hello, block).await;
    assert!(is_told_apart(&routes, block));
    // It blocks before there is a future.
    let gate = Gate::default();
    let held = gate.clone();
    let app = service_fn(move |request: Request| {
        let is_hello = request.uri().path() == "/called-hello";
        let text = if is_hello { "hello" } else { held.block() };
        ready(Ok::<_, Infallible>(Response::new(Body::from(text))))
    });
    holds_up_nobody(app, &gate, "/called-hello", "/called-block").await;
    // Made by hand for each connection.
    let gate = Gate::default();
    let each = service(&gate);
    let make = service_fn(move |_: ConnectionInfo| ready(Ok::<_, Infallible>(each.clone())));
    holds_up_nobody(make, &gate, hello, block).await;
}

#[tokio::test]
async fn a_router_made_for_each_connection() {
    let gate = Gate::default();
    let held = gate.clone();
    let make = service_fn(move |connection: ConnectionInfo| {
        assert!(connection.peer.is_some());
        ready(Ok::<_, Infallible>(router("/each", &held)))
    });
    let routes = holds_up_nobody(make, &gate, "/each/hello", "/each/block/1").await;
    assert_told_apart(&routes, "/each");
}

#[tokio::test]
async fn fallbacks() {
    let gate = Gate::default();
    let app = Router::new()
        .route("/fallback/hello", get(|| async { "hello" }))
        .fallback(blocking(&gate));
    holds_up_nobody(app, &gate, "/fallback/hello", "/anywhere").await;
    let gate = Gate::default();
    let held = gate.clone();
    let service = service_fn(move |_: Request| {
        let held = held.clone();
        async move { Ok::<_, Infallible>(held.block()) }
    });
    let app = Router::new()
        .route("/fallback/hello", get(|| async { "hello" }))
        .fallback_service(service);
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    holds_up_nobody(app, &gate, "/fallback/hello", "/anywhere").await;
}

#[tokio::test]
async fn nested_routers_and_services() {
    let gate = Gate::default();
    let app = Router::new().nest("/nest", router("/inner", &gate));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let routes = holds_up_nobody(app, &gate, "/nest/inner/hello", "/nest/inner/block/1").await;
    assert_told_apart(&routes, "/nest/inner");

    let gate = Gate::default();
    let app = Router::new()
        .nest_service("/nested-hello", get(|| async { "hello" }))
        .nest_service("/nested-block", get(blocking(&gate)));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let routes = holds_up_nobody(app, &gate, "/nested-hello/x", "/nested-block/x").await;
    assert!(is_told_apart(&routes, "/nested-block"));

    let gate = Gate::default();
    let app = Router::new()
        .route_service(
            "/route-service/hello",
            any_service(get(|| async { "hello" })),
        )
        .route_service("/route-service/block", get(blocking(&gate)))
        .nest_service("/nested-service", get(blocking(&gate)));
    let routes = holds_up_nobody(app, &gate, "/route-service/hello", "/route-service/block").await;
    assert!(is_told_apart(&routes, "/route-service/block"));
}
