//! The physical limit: one thread, epoll, a canned response.

use clap::Parser;
use http_bench_apps::{HELLO, Options, announce, listen};
use http_bench_peers::{Response, Server};

/// Pipelined requests that get their responses by one write.
const COPIES: usize = 32;

#[derive(Debug, Parser)]
struct RawOptions {
    #[command(flatten)]
    common: Options,
    /// Say in each response that the connection stays, which HTTP/1.0 clients such as ab need
    #[arg(long)]
    say_keep_alive: bool,
}

fn main() -> anyhow::Result<()> {
    let RawOptions {
        common: options,
        say_keep_alive,
    } = RawOptions::parse();
    let listener = listen(options.port)?;
    announce(listener.local_addr()?)?;
    let connection = if say_keep_alive {
        "connection: keep-alive\r\n"
    } else {
        ""
    };
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
         date: Sun, 06 Nov 1994 08:49:37 GMT\r\n{connection}\r\n{HELLO}",
        HELLO.len()
    );
    Server::new(listener, Response::new(response.as_bytes(), COPIES), None)?.run()?;
    Ok(())
}
