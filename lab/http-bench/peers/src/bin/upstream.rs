//! The upstream of the proxy case: the same large response to everything, after the same delay.

use std::time::Duration;

use clap::Parser;
use http_bench_apps::{announce, listen};
use http_bench_peers::{Response, Server};

#[derive(Debug, Parser)]
struct Options {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Milliseconds between request and response
    #[arg(long, default_value_t = 170)]
    delay_ms: u64,
    /// Length of the body
    #[arg(long, default_value_t = 45_056)]
    body_bytes: usize,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let listener = listen(options.port)?;
    announce(listener.local_addr()?)?;
    let mut response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {}\r\n\r\n",
        options.body_bytes
    )
    .into_bytes();
    response.resize(response.len() + options.body_bytes, b'x');
    let delay = Duration::from_millis(options.delay_ms);
    Server::new(listener, Response::new(&response, 1), Some(delay))?.run()?;
    Ok(())
}
