//! The applications, by the place where each runs its handlers.

use axum::error_handling::HandleErrorLayer;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use axum::{BoxError, Router};
use clap::ValueEnum;
use greenroom_stage::{Placement, Stage};
use tower::ServiceBuilder;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower_http::compression::CompressionLayer;

use crate::handlers::{
    block_elsewhere, block_inline, by_path, fib_elsewhere, fib_inline, give, hello, json, status,
    take,
};

/// The most `/fib` requests in flight in the application with `load_shed`.
const CONCURRENCY_MAX: usize = 16;

/// The shape in which an application is handed to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// `into_make_service_with_connect_info` of the router
    MakeService,
    /// One `MethodRouter`, whose handler looks at the path
    MethodRouter,
    /// tower-http's `NormalizePath` around the router
    NormalizePath,
    /// The router itself
    Router,
}

/// `/hello` and `/block/{millis}` of one handler, the shape without a router.
pub(crate) fn method_router() -> MethodRouter {
    get(by_path)
}

/// An application, by the rule that decides where its handlers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Application {
    /// `Placement::auto` around all routes, nothing said about any of them
    Auto,
    /// `/json`, which tower-http compresses while its body is sent, and `/hello`
    Compressed,
    /// `/inline` and `/staged`: the same handler, placed by name
    HandOff,
    /// In the async handler, as a beginner writes it
    Inline,
    /// `spawn_blocking`, and on `/fib` `load_shed` around a limit of 16
    LoadShed,
    /// `spawn_blocking` for what computes or blocks
    SpawnBlocking,
}

impl Application {
    /// Its routes.
    ///
    /// # Panics
    /// When the system has no threads for a stage.
    pub(crate) fn router(self) -> Router {
        let placed = match self {
            Self::Auto => routes(get(fib_inline), get(block_inline)).layer(Placement::auto()),
            Self::Compressed => compressed(),
            Self::HandOff => hand_off(),
            Self::Inline => routes(get(fib_inline), get(block_inline)),
            Self::LoadShed => routes(bounded(get(fib_elsewhere)), get(block_elsewhere)),
            Self::SpawnBlocking => routes(get(fib_elsewhere), get(block_elsewhere)),
        };
        placed.route("/greenroom/status", get(status))
    }
}

fn routes(fib: MethodRouter, block: MethodRouter) -> Router {
    Router::new()
        .route("/hello", get(hello))
        .route("/fib/{n}", fib)
        .route("/block/{millis}", block)
        .route("/take", post(take))
        .route("/give", get(give))
        // Its author takes it for short.
        .route("/page/{n}", get(fib_inline))
}

fn compressed() -> Router {
    Router::new()
        .route("/hello", get(hello))
        .route("/json", get(json))
        .layer(CompressionLayer::new())
}

fn hand_off() -> Router {
    let staged = Placement::on(Stage::global());
    Router::new()
        .route("/inline", get(hello).layer(Placement::inline()))
        .route("/staged", get(hello).layer(staged))
}

/// As the documentation of both layers puts them together; the limit is one for all connections.
fn bounded(route: MethodRouter) -> MethodRouter {
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(overloaded))
        .layer(LoadShedLayer::new())
        .layer(GlobalConcurrencyLimitLayer::new(CONCURRENCY_MAX));
    route.layer(layers)
}

async fn overloaded(_: BoxError) -> StatusCode {
    StatusCode::SERVICE_UNAVAILABLE
}
