//! Greenroom with a plain service, over TLS and without.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use clap::Parser;
use greenroom::Tls;
use http_bench_apps::{TlsOptions, hello};
use http_bench_ours::serve_tls;
use rustls::crypto::ring;
use tower::service_fn;

#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    common: TlsOptions,
    /// Use the cryptography of ring instead of AWS-LC
    #[arg(long)]
    ring: bool,
}

fn main() -> anyhow::Result<()> {
    let Options { common, ring } = Options::parse();
    let mut tls = Tls::builder().certificate(&common.certificate, &common.key);
    if ring {
        tls = tls.provider(Arc::new(ring::default_provider()));
    }
    let app = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(hello::<Body>()) });
    serve_tls(&common, tls.build()?, app)
}
