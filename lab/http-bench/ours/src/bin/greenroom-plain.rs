//! Greenroom with a plain service.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::Request;
use clap::Parser;
use http_bench_apps::{App, Options, echo, hello};
use http_bench_ours::serve;
use tower::service_fn;

fn main() -> anyhow::Result<()> {
    let Options { port, app } = Options::parse();
    match app {
        App::Echo => serve(
            port,
            service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(echo::<Body>().await) }),
        ),
        App::Hello => serve(
            port,
            service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(hello::<Body>()) }),
        ),
    }
}
