//! Opens keep-alive connections, lets each have one response, and holds them until standard input
//! ends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use rustls::client::Resumption;
use rustls::{ClientConfig, ClientConnection, Stream};

use http_bench_clients::{Offer, Target, response, server_name};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Parser)]
struct Options {
    /// <http://127.0.0.1:PORT/PATH>, or with https
    #[arg(long)]
    url: Target,
    /// Number of connections
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=19_900))]
    connections: u32,
    /// Client addresses 127.0.0.2, .3, … to spread them over, when one has too few ports
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    sources: u8,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let tls = tls()?;
    let mut held = Vec::new();
    for index in 0..options.connections {
        held.push(open(&options.url, &tls, source(index, options.sources))?);
    }
    for stream in &held {
        ensure!(is_open(stream)?, "the server closed an idle connection");
    }
    let mut out = io::stdout();
    writeln!(out, "holding {} connections", held.len())?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Every connection has a full handshake.
fn tls() -> anyhow::Result<Arc<ClientConfig>> {
    let mut config = Offer::Browser.config()?;
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// A connection that has had its response. Nothing more is sent on it, so its keys are not kept.
fn open(target: &Target, tls: &Arc<ClientConfig>, source: Ipv4Addr) -> anyhow::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrV4::new(source, 0))
        .with_context(|| format!("no port left on {source}"))?;
    connect(&socket, &target.address).context("connect")?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    // Else the request waits until the end of the handshake is acknowledged, 40 ms later.
    stream.set_nodelay(true)?;
    if target.is_tls {
        let mut connection = ClientConnection::new(Arc::clone(tls), server_name(target))?;
        ask(target, &mut Stream::new(&mut connection, &mut stream))?;
    } else {
        ask(target, &mut stream)?;
    }
    Ok(stream)
}

fn ask(target: &Target, stream: &mut (impl Read + Write)) -> anyhow::Result<()> {
    stream.write_all(&target.get()).context("write")?;
    response::read(stream)
}

fn is_open(stream: &TcpStream) -> io::Result<bool> {
    stream.set_nonblocking(true)?;
    match stream.peek(&mut [0]) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

fn source(index: u32, sources: u8) -> Ipv4Addr {
    let step = u8::try_from(index % u32::from(sources)).expect("less than `sources`");
    Ipv4Addr::new(127, 0, 0, 2 + step)
}
