//! `BodyLimit` beside the server's limit and axum's.

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use futures_util::{StreamExt, stream};
use greenroom::{BodyLimit, Limits, Server};
use http::{Request, StatusCode};
use hyper::body::Bytes;

use crate::rig::{Rig, ask, http1, http2, within};

/// The server's limit and that of the routes that take more. A client that is refused has sent less
/// than the server reads from it before it closes, so that it always sees its answer.
const DEFAULT: usize = 200_000;
const RAISED: usize = 700_000;

async fn buffered(body: Bytes) -> String {
    body.len().to_string()
}

async fn streamed(request: Request<Body>) -> Result<String, StatusCode> {
    let mut bytes = 0;
    let mut parts = request.into_body().into_data_stream();
    while let Some(part) = parts.next().await {
        // Whatever the application makes of it: the server answers for a body over its limit.
        bytes += part.map_err(|_| StatusCode::IM_A_TEAPOT)?.len();
    }
    Ok(bytes.to_string())
}

fn app() -> Router {
    let routes = || {
        Router::new()
            .route("/buffered", post(buffered))
            .route("/streamed", post(streamed))
    };
    let raised = routes().route_layer(BodyLimit::max(RAISED as u64));
    let lowered = routes().route_layer(BodyLimit::max(1_000));
    Router::new()
        .nest("/default", routes())
        .nest("/raised", raised)
        .nest("/lowered", lowered)
        .nest("/unlimited", routes().route_layer(BodyLimit::unlimited()))
}

fn start(app: Router) -> Rig {
    let limits = Limits {
        body_bytes_max: DEFAULT as u64,
        ..Limits::default()
    };
    Rig::with(Server::builder().limits(limits), app)
}

/// What clients get who send so many bytes: with their length told, and without.
async fn statuses(server: &Rig, path: &str, bytes: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for handler in ["buffered", "streamed"] {
        for client in [http1::<Body>(), http2()] {
            let parts = vec![b'b'; bytes];
            let parts: Vec<_> = parts.chunks(50_000).map(Bytes::copy_from_slice).collect();
            let chunked =
                Body::from_stream(stream::iter(parts.into_iter().map(Ok::<_, axum::Error>)));
            for body in [Body::from(vec![b'b'; bytes]), chunked] {
                let uri = server.url(&format!("{path}/{handler}"));
                let request = Request::post(uri).body(body).unwrap();
                let (status, said) = ask(&client, request).await;
                if status == StatusCode::OK {
                    assert_eq!(said, bytes.to_string());
                }
                statuses.push(status.as_u16());
            }
        }
    }
    statuses.dedup();
    statuses
}

#[tokio::test]
async fn without_a_layer_the_servers_limit_holds() {
    within(async {
        let server = start(app());
        assert_eq!(statuses(&server, "/default", 0).await, [200]);
        assert_eq!(statuses(&server, "/default", DEFAULT).await, [200]);
        assert_eq!(statuses(&server, "/default", DEFAULT + 1).await, [413]);
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_route_may_take_more() {
    within(async {
        let server = start(app());
        assert_eq!(statuses(&server, "/raised", RAISED).await, [200]);
        assert_eq!(statuses(&server, "/raised", RAISED + 1).await, [413]);
        assert_eq!(statuses(&server, "/unlimited", 5_000_000).await, [200]);
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_route_may_take_less() {
    within(async {
        let server = start(app());
        assert_eq!(statuses(&server, "/lowered", 1_000).await, [200]);
        assert_eq!(statuses(&server, "/lowered", 1_001).await, [413]);
        assert_eq!(statuses(&server, "/lowered", RAISED).await, [413]);
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn of_two_layers_the_outer_one_refuses_what_it_can_measure() {
    within(async {
        let inner = Router::new()
            .route("/buffered", post(buffered))
            .route("/streamed", post(streamed))
            .route_layer(BodyLimit::max(RAISED as u64));
        let app = Router::new()
            .nest("/both", inner)
            .layer(BodyLimit::max(1_000));
        let server = start(app);
        assert_eq!(statuses(&server, "/both", 1_000).await, [200]);
        assert_eq!(statuses(&server, "/both", RAISED + 1).await, [413]);
        let told = Request::post(server.url("/both/buffered"));
        let told = told.body(Body::from(vec![b'b'; 2_000])).unwrap();
        assert_eq!(ask(&http1(), told).await.0, 413);
        server.end().await;
    })
    .await;
}
