//! The demo application: an ordinary axum [`Router`] whose routes show, one each, the kinds of
//! work that a web server meets: waiting, computing, relaying, streaming in and streaming out.

mod bytes;
mod echo;
mod fib;
mod health;
mod hello;
mod number;
mod pixel;
mod proxy;
mod upload;
mod ws;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};

pub use proxy::{Upstream, UpstreamError};

/// What the demo application can be told.
#[derive(Clone, Debug, Default)]
pub struct Demo {
    /// Where `/proxy` fetches its answer; without it the route answers 404.
    pub upstream: Option<Upstream>,
}

/// The demo application.
///
/// It sets no limit on request bodies: `/upload` takes what the server in front of it lets through.
pub fn router(demo: Demo) -> Router {
    Router::new()
        .route("/", get(echo::page))
        .route("/hello", get(hello::answer))
        .route("/health", get(health::answer))
        .route("/pixel.gif", get(pixel::answer))
        .route("/pixel/", get(pixel::answer))
        .route("/pixel/{*rest}", get(pixel::answer))
        .route("/fib/{n}", get(fib::answer))
        .route("/bytes/{n}", get(bytes::answer))
        .route("/upload", post(upload::answer).put(upload::answer))
        .route("/ws/echo", get(ws::upgrade))
        .route("/proxy", get(proxy::relay))
        .fallback(not_found)
        .with_state(demo)
}

async fn not_found() -> (StatusCode, &'static str) {
    (
        StatusCode::NOT_FOUND,
        "Nothing is here. The page at / lists what there is.\n",
    )
}
