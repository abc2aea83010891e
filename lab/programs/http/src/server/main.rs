//! The servers of the experiments with HTTP: the physical limit, peers and Greenroom, one thread
//! each, with the same applications.

mod apps;
mod ours;
mod peers;
mod proxy;
mod raw;
mod readiness;
#[path = "../../../../../crates/greenroom-load/tests/fixture/stall.rs"]
mod stall;
mod tls;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime, Runtime};

/// As long as the kernel's default limit (`somaxconn`), so that no server is measured by its
/// backlog.
const BACKLOG: i32 = 4096;

/// The servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Epoll and a canned response: the physical limit
    Raw,
    /// A canned response by a task of the runtime for each connection
    Tasks,
    /// A canned response to all connections of an epoll instance within the runtime's
    Nested,
    /// hyper with a plain service
    Hyper,
    /// axum's `Router` behind `axum::serve`
    Axum,
    /// actix-web with its own router
    Actix,
    /// axum and reqwest, which pass on to `--upstream`
    Proxy,
    /// Greenroom with a plain service
    Greenroom,
    /// Greenroom with axum's `Router`
    GreenroomAxum,
    /// Stands still for the last second of every five
    Stall,
}

#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
struct Options {
    /// The server
    kind: Kind,
    /// Address that is served without TLS
    #[arg(long)]
    listen: SocketAddr,
    /// Address that is served over TLS, too (hyper, greenroom)
    #[arg(long, requires_all = ["certificate", "key"])]
    tls: Option<SocketAddr>,
    /// Certificate, in PEM
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Use the cryptography of ring instead of AWS-LC (greenroom)
    #[arg(long)]
    ring: bool,
    /// Respond after two seconds (hyper, greenroom; servers with a router choose by path)
    #[arg(long)]
    echo: bool,
    /// Leave the service on the loop, unplaced (greenroom)
    #[arg(long)]
    on_loops: bool,
    /// Respond to pipelined requests in one write, which hyper leaves off by default
    #[arg(long)]
    pipeline_flush: bool,
    /// End in order on SIGTERM (axum, greenroom-axum)
    #[arg(long)]
    drain: bool,
    /// Server to which every request goes (proxy)
    #[arg(long)]
    upstream: Option<reqwest::Url>,
    /// Say in each response that the connection stays, which HTTP/1.0 clients such as ab need (raw,
    /// tasks, nested)
    #[arg(long)]
    say_keep_alive: bool,
    /// Milliseconds from a request to its response (raw)
    #[arg(long, value_name = "MILLISECONDS")]
    delay: Option<u64>,
    /// Length of the body in bytes, instead of a few words (raw, tasks, nested)
    #[arg(long, value_name = "BYTES")]
    body: Option<usize>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let response = || raw::response(options.body, options.say_keep_alive);
    match options.kind {
        Kind::Raw => {
            let delay = options.delay.map(Duration::from_millis);
            raw::serve(listen(options.listen)?, &response(), delay)
        }
        Kind::Tasks => {
            local_runtime()?.block_on(readiness::tasks(listen(options.listen)?, response()))
        }
        Kind::Nested => {
            local_runtime()?.block_on(readiness::nested(listen(options.listen)?, response()))
        }
        Kind::Hyper if options.tls.is_some() => runtime()?.block_on(tls::serve(&options)),
        Kind::Hyper => runtime()?.block_on(peers::hyper(&options)),
        Kind::Axum => runtime()?.block_on(peers::axum(&options)),
        Kind::Actix => peers::actix(listen(options.listen)?),
        Kind::Proxy => {
            let upstream = options.upstream.context("--upstream is missing")?;
            runtime()?.block_on(proxy::serve(options.listen, upstream))
        }
        Kind::Greenroom | Kind::GreenroomAxum => runtime()?.block_on(ours::serve(&options)),
        Kind::Stall => Ok(stall::serve(TcpListener::bind(options.listen)?)?),
    }
}

/// Binds an address of IPv4, non-blocking.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// One thread, as every server under comparison has.
fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// One thread, for tasks that stay on it.
fn local_runtime() -> io::Result<LocalRuntime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build_local(LocalOptions::default())
}
