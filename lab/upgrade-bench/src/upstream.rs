//! The application behind those servers that have none of their own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::thread;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::net::TcpListener;

use crate::client::{CHUNK_BYTES, HELLO};

/// Serves on a thread of its own until the program ends.
///
/// # Errors
/// If it cannot listen.
pub(crate) fn start() -> anyhow::Result<SocketAddr> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
    let listener = listener.context("the upstream")?;
    let address = listener.local_addr()?;
    let routes = Router::new()
        .route("/hello", get(async || HELLO))
        .route("/upload", post(upload))
        .route("/bytes/{n}", get(download))
        .route(
            "/ws/echo",
            get(async |upgrade: WebSocketUpgrade| upgrade.on_upgrade(echo)),
        );
    thread::Builder::new()
        .name("upstream".to_owned())
        .spawn(move || runtime.block_on(async { axum::serve(listener, routes).await }))?;
    Ok(address)
}

async fn upload(body: Body) -> Result<String, StatusCode> {
    let mut pieces = body.into_data_stream();
    let mut bytes = 0;
    while let Some(piece) = pieces.next().await {
        bytes += piece.map_err(|_| StatusCode::BAD_REQUEST)?.len();
    }
    Ok(format!("{{\"bytes\":{bytes}}}"))
}

async fn download(Path(length): Path<usize>) -> Result<Response, StatusCode> {
    let line = b"abcdefghijklmnopqrstuvwxyz\n".iter().copied().cycle();
    let chunk: Bytes = line.take(CHUNK_BYTES).collect();
    let pieces = stream::unfold(length, move |left| {
        let piece = chunk.slice(..left.min(CHUNK_BYTES));
        async move { (left > 0).then(|| (Ok::<_, Infallible>(piece.clone()), left - piece.len())) }
    });
    let response = Response::builder().header(CONTENT_LENGTH, length);
    let response = response.body(Body::from_stream(pieces));
    response.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, Message::Text(_)) && socket.send(message).await.is_err() {
            return;
        }
    }
}
