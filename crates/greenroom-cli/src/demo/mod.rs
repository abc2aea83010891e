//! The demo application: an ordinary axum [`Router`] whose routes show, one each, the kinds of
//! work that a web server meets: waiting, computing, blocking, relaying, streaming in and out.
//!
//! None says where it runs. All that is said is who matters most: whoever looks after the server.

mod block;
mod bytes;
mod echo;
mod fib;
mod health;
mod hello;
mod mixed;
mod number;
mod pixel;
mod proxy;
mod upload;
mod ws;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use greenroom::{Importance, Placement};

pub use proxy::{Upstream, UpstreamError};

/// What the demo application can be told.
#[derive(Clone, Debug, Default)]
pub struct Demo {
    /// Where `/proxy` fetches its answer; without it the route answers 404.
    pub upstream: Option<Upstream>,
}

/// The demo application.
///
/// It sets no limit on request bodies: `/upload` takes what the server in front of it lets through,
/// and responds to more with 413.
pub fn router(demo: Demo) -> Router {
    Router::new()
        .route("/", get(echo::page))
        .route("/hello", get(hello::answer))
        .route("/pixel.gif", get(pixel::answer))
        .route("/pixel/", get(pixel::answer))
        .route("/pixel/{*rest}", get(pixel::answer))
        .route("/fib/{n}", get(fib::answer))
        .route("/block/{ms}", get(block::answer))
        .route("/mixed", get(mixed::answer))
        .route("/bytes/{n}", get(bytes::answer))
        .route("/upload", post(upload::answer).put(upload::answer))
        .route("/ws/echo", get(ws::upgrade))
        .route("/proxy", get(proxy::relay))
        .merge(for_operators())
        .fallback(not_found)
        .with_state(demo)
}

/// What must be answered under overload too.
fn for_operators() -> Router<Demo> {
    Router::new()
        .route("/health", get(health::answer))
        .route("/greenroom/status", get(greenroom::status_handler))
        .layer(Placement::auto().importance(Importance::Critical))
}

async fn not_found() -> (StatusCode, &'static str) {
    (
        StatusCode::NOT_FOUND,
        "Nothing is here. The page at / lists what there is.\n",
    )
}
