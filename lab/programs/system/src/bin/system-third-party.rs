//! The third party: a page of 44 kB that takes 170 ms by a timer, for thousands of clients at once
//! on one event loop.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use axum::body::Bytes;
use clap::Parser;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;

const BACKLOG: u32 = 4096;
const PAGE_BYTES: usize = 44_000;
const END: &str = "<p>This is the end of the page.\n";

static PAGE: LazyLock<Bytes> = LazyLock::new(page);

#[derive(Debug, Parser)]
struct Options {
    #[arg(long)]
    listen: SocketAddr,
    /// Time that the page takes
    #[arg(long, default_value_t = 170)]
    millis: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(options.listen)?;
    let listener = socket.listen(BACKLOG)?;
    let delay = Duration::from_millis(options.millis);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, delay))),
            // Out of descriptors, mostly: the clients that have them will end.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, delay: Duration) {
    // A connection that is gone already needs no option.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| respond(request, delay));
    // A client that leaves is not the third party's failure.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(
    _: Request<Incoming>,
    delay: Duration,
) -> Result<Response<Full<Bytes>>, Infallible> {
    sleep(delay).await;
    let mut response = Response::new(Full::new(PAGE.clone()));
    let kind = hyper::header::HeaderValue::from_static("text/html");
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, kind);
    Ok(response)
}

/// Returns exactly [`PAGE_BYTES`] that end as nothing else in them does.
fn page() -> Bytes {
    let mut text = String::from("<!doctype html>\n<title>A page</title>\n");
    while text.len() + END.len() < PAGE_BYTES {
        text.push_str("<p>A line of a page that others look at, and that is tunnelled.\n");
    }
    text.truncate(PAGE_BYTES - END.len());
    text.push_str(END);
    Bytes::from(text)
}
