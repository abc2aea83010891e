use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, DefaultBodyLimit};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version};
use axum::routing::{any, get as on_get, post};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::StreamBody;

use super::{mebibytes, peer};
use crate::harness::Rig;

pub(super) fn app(rig: Rig) -> Router {
    whole().merge(streamed(rig.clone())).merge(waiting(rig))
}

fn whole() -> Router {
    let cookies = || async {
        let mut fields = HeaderMap::new();
        fields.append(SET_COOKIE, HeaderValue::from_static("a=1"));
        fields.append(SET_COOKIE, HeaderValue::from_static("b=2"));
        fields
    };
    let fields = |fields: HeaderMap| async move {
        let mut lines: Vec<_> = fields.iter().map(|field| format!("{field:?}\n")).collect();
        lines.sort();
        lines.concat()
    };
    Router::new()
        .route(
            "/",
            on_get(|version: Version| async move { format!("hello by {version:?}") }),
        )
        .route("/echo", post(|body: Bytes| async move { body }))
        .route(
            "/any-size",
            post(|body: Bytes| async move { format!("{} bytes", body.len()) })
                .layer(DefaultBodyLimit::disable()),
        )
        .route("/none", on_get(|| async { StatusCode::NO_CONTENT }))
        .route(
            "/not-modified",
            on_get(|| async { StatusCode::NOT_MODIFIED }),
        )
        .route("/large", on_get(|| async { mebibytes(1) }))
        .route(
            "/uri/{word}",
            on_get(|uri: Uri| async move { uri.to_string() }),
        )
        .route("/fields", on_get(fields))
        .route("/cookies", on_get(cookies))
        .route(
            "/connection-close",
            on_get(|| async { ([("connection", "close")], "closing?") }),
        )
        .route("/ignore", post(|| async { "ignored" }))
        .route(
            "/peer",
            on_get(|ConnectInfo(address): ConnectInfo<SocketAddr>| async move { peer(address) }),
        )
        .route("/panic", on_get(|| async { fail() }))
        .route(
            "/websocket",
            any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(speak) }),
        )
}

fn fail() -> &'static str {
    panic!("a panic that is meant")
}

async fn speak(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let is_said = matches!(message, Message::Text(_) | Message::Binary(_));
        if is_said && socket.send(message).await.is_err() {
            return;
        }
    }
}

fn streamed(rig: Rig) -> Router {
    let failing = rig.clone();
    let parts = move || async move {
        let parts = stream::iter(["one", "two", "three"].into_iter().enumerate());
        Body::from_stream(parts.then(move |(number, part)| {
            let rig = rig.clone();
            async move {
                if number > 0 {
                    rig.released().await;
                }
                Ok::<_, Infallible>(part)
            }
        }))
    };
    let trailers = || async {
        let name = HeaderName::from_static("x-checksum");
        let trailers = HeaderMap::from_iter([(name, HeaderValue::from_static("abc"))]);
        let frames = [
            Frame::data(Bytes::from_static(b"data")),
            Frame::trailers(trailers),
        ];
        Body::new(StreamBody::new(stream::iter(
            frames.map(Ok::<_, Infallible>),
        )))
    };
    let fails = move || async move {
        let parts = stream::iter(["one", "failure"]).then(move |part| {
            let rig = failing.clone();
            async move {
                if part == "one" {
                    return Ok(part);
                }
                rig.released().await;
                Err(io::Error::other("the stream failed"))
            }
        });
        Body::from_stream(parts)
    };
    Router::new()
        .route("/parts", on_get(parts))
        .route("/trailers", on_get(trailers))
        .route("/fails", on_get(fails))
        .route(
            "/stream",
            on_get(|| async {
                let parts = ["one", "two"].map(Ok::<_, Infallible>);
                Body::from_stream(stream::iter(parts))
            }),
        )
        .route(
            "/echo-stream",
            post(|body: Body| async move { Body::from_stream(body.into_data_stream()) }),
        )
}

/// A guard that notes when the future that holds it is dropped.
struct Guard(Rig);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.note("the handler is gone");
    }
}

fn waiting(rig: Rig) -> Router {
    let released = rig.clone();
    let guarded = move || async move {
        let guard = Guard(rig);
        guard.0.note("the handler has begun");
        guard.0.released().await;
        "released"
    };
    Router::new()
        .route(
            "/when-released",
            on_get(move || async move {
                released.released().await;
                "released"
            }),
        )
        .route("/guarded", post(guarded))
}
