//! hyper's HTTP/1 server with a plain service.

use std::convert::Infallible;
use std::future::Future;

use clap::Parser;
use http_bench_apps::{App, Options, announce, echo, hello, listen, runtime};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

type Outcome = Result<Response<Full<Bytes>>, Infallible>;

#[derive(Debug, Parser)]
struct HyperOptions {
    #[command(flatten)]
    common: Options,
    /// Respond to pipelined requests in one write, which hyper leaves off by default
    #[arg(long)]
    pipeline_flush: bool,
}

fn main() -> anyhow::Result<()> {
    let HyperOptions {
        common: options,
        pipeline_flush,
    } = HyperOptions::parse();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).pipeline_flush(pipeline_flush);
    runtime()?.block_on(async {
        let listener = TcpListener::from_std(listen(options.port)?)?;
        announce(listener.local_addr()?)?;
        match options.app {
            App::Echo => serve(&http, listener, |_| async { Ok(echo().await) }).await,
            App::Hello => serve(&http, listener, |_| async { Ok(hello()) }).await,
        }
    })
}

async fn serve<F, A>(http: &http1::Builder, listener: TcpListener, handler: F) -> anyhow::Result<()>
where
    F: Fn(Request<Incoming>) -> A + Copy + Send + 'static,
    A: Future<Output = Outcome> + Send + 'static,
{
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let connection = http.serve_connection(TokioIo::new(stream), service_fn(handler));
        tokio::spawn(connection);
    }
}
