//! The demo application: an ordinary axum [`Router`] whose routes show, one each, the kinds of
//! work that a web server meets: waiting, computing, blocking, relaying, streaming in and out.
//!
//! No route says where it runs. The only placement is the priority of the operator's routes.

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
use axum::routing::{any, get, post};
use greenroom::{Placement, Priority};

pub use proxy::{Upstream, UpstreamError};

/// The settings of the demo application.
#[derive(Clone, Debug, Default)]
pub struct Demo {
    /// The upstream of `/proxy`; without it the route responds with 404.
    pub upstream: Option<Upstream>,
}

/// Returns the demo application.
///
/// It sets no limit on request bodies: `/upload` takes as much as the server lets through, which
/// responds to more with 413.
pub fn router(demo: Demo) -> Router {
    Router::new()
        .route("/", get(echo::page))
        .route("/hello", get(hello::respond))
        .route("/pixel.gif", get(pixel::respond))
        .route("/pixel/", get(pixel::respond))
        .route("/pixel/{*rest}", get(pixel::respond))
        .route("/fib/{n}", get(fib::respond))
        .route("/block/{ms}", get(block::respond))
        .route("/mixed", get(mixed::respond))
        .route("/bytes/{n}", get(bytes::respond))
        .route("/upload", post(upload::respond).put(upload::respond))
        .route("/ws/echo", any(ws::upgrade))
        .route("/proxy", get(proxy::relay))
        .merge(for_operators())
        .fallback(not_found)
        .with_state(demo)
}

/// Returns the routes that must be served under overload too.
fn for_operators() -> Router<Demo> {
    Router::new()
        .route("/health", get(health::respond))
        .route("/greenroom/status", get(greenroom::status_handler))
        .layer(Placement::auto().priority(Priority::Critical))
}

async fn not_found() -> (StatusCode, &'static str) {
    (
        StatusCode::NOT_FOUND,
        "Nothing is here. The page at / lists what there is.\n",
    )
}
