//! Greenroom with the `Router` of its peer `axum-drain`, which drains on SIGTERM.

use clap::Parser;
use http_bench_apps::{Options, router};
use http_bench_ours::serve_until_told;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    serve_until_told(options.port, router())
}
