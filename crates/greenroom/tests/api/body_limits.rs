//! The length of bodies: the limits of the application, and the server's cap on top of them. The
//! response is the application's in any case.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::routing::post;
use futures_util::{StreamExt, stream};
use greenroom::{Limits, Server};
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use tower_http::cors::CorsLayer;
use tower_http::limit::RequestBodyLimitLayer;

use crate::rig::{Rig, http1, http2, within};

/// The default limit of axum's extractors.
const AXUMS: usize = 2_097_152;
/// The limit of some routes. A client that is rejected sends less than the server reads from it
/// before it closes, so that it always sees its response.
const RAISED: usize = 3_000_000;
/// The server's cap, where it has one.
const CAP: usize = 200_000;

async fn buffered(body: Bytes) -> String {
    body.len().to_string()
}

async fn counted(body: Body) -> Result<String, StatusCode> {
    let mut bytes = 0;
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        bytes += part.map_err(|_| StatusCode::IM_A_TEAPOT)?.len();
    }
    Ok(bytes.to_string())
}

async fn teapot(body: Result<Bytes, BytesRejection>) -> Result<String, StatusCode> {
    let body = body.map_err(|_| StatusCode::IM_A_TEAPOT)?;
    Ok(body.len().to_string())
}

async fn form(mut form: Multipart) -> Result<String, axum::extract::multipart::MultipartError> {
    let mut bytes = 0;
    while let Some(field) = form.next_field().await? {
        bytes += field.bytes().await?.len();
    }
    Ok(bytes.to_string())
}

fn app() -> Router {
    let behind_a_layer = Router::new()
        .route("/layer", post(buffered))
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(RAISED));
    Router::new()
        .route("/any", post(buffered).layer(DefaultBodyLimit::disable()))
        .route("/form", post(form).layer(DefaultBodyLimit::disable()))
        .route("/more", post(buffered).layer(DefaultBodyLimit::max(RAISED)))
        .route("/buffered", post(buffered))
        .route("/counted", post(counted))
        .route("/teapot", post(teapot))
        .route("/echo", post(async |body: Body| body))
        .route("/unread", post(|| async { "no need" }))
        .merge(behind_a_layer)
        .layer(CorsLayer::permissive())
}

fn capped() -> Rig {
    let limits = Limits {
        body_bytes_max: CAP as u64,
        ..Limits::default()
    };
    Rig::with(Server::builder().limits(limits), app())
}

/// Returns bodies of so many bytes: one with its length declared, and one without.
fn bodies(bytes: usize) -> [Body; 2] {
    let whole = vec![b'b'; bytes];
    let parts: Vec<_> = whole.chunks(50_000).map(Bytes::copy_from_slice).collect();
    let parts = parts.into_iter().map(Ok::<_, Infallible>);
    [
        Body::from(whole),
        Body::from_stream(stream::iter(parts.collect::<Vec<_>>())),
    ]
}

/// Asserts the status for clients of both protocols that send so many bytes, all of them.
async fn assert_status(server: &Rig, path: &str, bytes: usize, status: u16) {
    for client in [http1::<Body>(), http2()] {
        for body in bodies(bytes) {
            let request = Request::post(server.url(path)).body(body).unwrap();
            let response = client.request(request).await.unwrap();
            assert_eq!(response.status(), status, "{path}, {bytes} bytes");
            let headers = response.headers();
            assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "*", "{path}");
            let said = response.into_body().collect().await.unwrap().to_bytes();
            if status == 200 && path != "/unread" {
                assert_eq!(said, bytes.to_string());
            }
        }
    }
}

#[tokio::test]
async fn the_application_says_how_long_a_body_may_be() {
    within(async {
        let server = Rig::start(app());
        for (path, bytes, status) in [
            ("/buffered", 0, 200),
            ("/buffered", AXUMS, 200),
            ("/buffered", AXUMS + 1, 413),
            ("/teapot", AXUMS + 1, 418),
            ("/more", RAISED, 200),
            ("/more", RAISED + 1, 413),
            ("/layer", RAISED, 200),
            ("/layer", RAISED + 1, 413),
            ("/any", 4_000_000, 200),
            ("/counted", 4_000_000, 200),
        ] {
            assert_status(&server, path, bytes, status).await;
        }
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn the_servers_cap_is_an_error_of_the_body_to_which_the_application_responds() {
    within(async {
        let server = capped();
        for (path, bytes, status) in [
            ("/buffered", CAP, 200),
            ("/buffered", CAP + 1, 413),
            ("/any", CAP + 1, 413),
            ("/layer", CAP + 1, 413),
            ("/counted", CAP, 200),
            ("/counted", CAP + 1, 418),
            ("/teapot", CAP + 1, 418),
            ("/unread", CAP + 1, 200),
        ] {
            assert_status(&server, path, bytes, status).await;
        }
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_form_over_the_cap_is_413_too() {
    within(async {
        let server = capped();
        for client in [http1::<Body>(), http2()] {
            let head = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
            let form = format!("{head}{}\r\n--b--\r\n", "f".repeat(CAP));
            let request = Request::post(server.url("/form"))
                .header(CONTENT_TYPE, "multipart/form-data; boundary=b")
                .body(Body::from(form));
            let response = client.request(request.unwrap()).await.unwrap();
            assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        }
        server.end().await;
    })
    .await;
}

/// The response grows with the request, so its client reads meanwhile.
#[tokio::test]
async fn a_hundred_megabytes_can_be_echoed() {
    const PART: usize = 100_000;
    const PARTS: usize = 1_000;
    within(async {
        let server = Rig::start(app());
        for client in [http1::<Body>(), http2()] {
            let part = Bytes::from(vec![b'e'; PART]);
            let parts = stream::iter((0..PARTS).map(move |_| Ok::<_, Infallible>(part.clone())));
            let request = Request::post(server.url("/echo")).body(Body::from_stream(parts));
            let response = client.request(request.unwrap()).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            let mut back = response.into_body().into_data_stream();
            let mut bytes = 0;
            while let Some(part) = back.next().await {
                let part = part.unwrap();
                assert!(part == vec![b'e'; part.len()]);
                bytes += part.len();
            }
            assert_eq!(bytes, PARTS * PART);
        }
        server.end().await;
    })
    .await;
}
