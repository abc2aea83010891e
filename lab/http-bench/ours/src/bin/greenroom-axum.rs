//! Greenroom with the `Router` that its peer `axum-hello` serves.

use clap::Parser;
use http_bench_apps::{Options, router};
use http_bench_ours::serve;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    serve(options.port, router())
}
