//! The physical limit: one thread, epoll, a canned answer.

use clap::Parser;
use http_bench_apps::{HELLO, Options, announce, listen};
use http_bench_peers::{Answer, Server};

/// Pipelined requests answered by one write.
const COPIES: usize = 32;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let listener = listen(options.port)?;
    announce(listener.local_addr()?)?;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
         date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n{HELLO}",
        HELLO.len()
    );
    Server::new(listener, Answer::new(answer.as_bytes(), COPIES), None)?.run()?;
    Ok(())
}
