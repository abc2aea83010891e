//! The application behind those servers that have none of their own.

use std::convert::Infallible;
use std::net::SocketAddr;

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

use crate::{CHUNK_BYTES, HELLO};

/// Serves until the program ends.
///
/// # Errors
/// If it cannot listen.
pub(crate) async fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await;
    let routes = Router::new()
        .route("/hello", get(async || HELLO))
        .route("/upload", post(upload))
        .route("/bytes/{n}", get(download))
        .route(
            "/ws/echo",
            get(async |upgrade: WebSocketUpgrade| upgrade.on_upgrade(echo)),
        );
    axum::serve(listener.context("the upstream")?, routes).await?;
    Ok(())
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
