//! The part of each benchmark server around its framework.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use tokio::runtime::{Builder, Runtime};

/// The flags of every benchmark server.
#[derive(Debug, Parser)]
pub struct Options {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Application to serve; servers with a router ignore it and choose by path
    #[arg(long, value_enum, default_value_t = App::Hello)]
    pub app: App,
}

/// The flags of every benchmark server with TLS.
#[derive(Debug, Parser)]
pub struct TlsOptions {
    /// Address that is served over TLS
    #[arg(long)]
    pub tls: SocketAddr,
    /// Address that is served without
    #[arg(long)]
    pub plain: SocketAddr,
    /// Certificate, in PEM
    #[arg(long, value_name = "FILE")]
    pub certificate: PathBuf,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
}

/// The application of a server without a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum App {
    /// Responds after two seconds
    Echo,
    /// Responds at once
    Hello,
}

/// As long as the kernel's default limit (`somaxconn`), so that no server is measured by its
/// backlog.
const BACKLOG: i32 = 4096;

/// Binds 127.0.0.1, non-blocking.
///
/// # Errors
/// When the port is taken.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    listen_on(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into())
}

/// Binds an address of IPv4, non-blocking.
///
/// # Errors
/// When it is taken.
pub fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// Prints the address that the server listens on.
///
/// # Errors
/// When standard output is closed.
pub fn announce(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "listening on {address}")?;
    out.flush()
}

/// One thread, as every server under comparison has.
///
/// # Errors
/// When the kernel refuses an epoll instance.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
