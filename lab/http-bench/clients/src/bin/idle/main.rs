//! Opens keep-alive connections, lets each have one response, and holds them until standard input
//! ends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use http_bench_clients::{Target, response};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Parser)]
struct Options {
    /// <http://127.0.0.1:PORT/PATH>
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
    let mut held = Vec::new();
    for index in 0..options.connections {
        held.push(open(&options.url, source(index, options.sources))?);
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

/// A connection that has had its response.
fn open(target: &Target, source: Ipv4Addr) -> anyhow::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrV4::new(source, 0))
        .with_context(|| format!("no port left on {source}"))?;
    connect(&socket, &target.address).context("connect")?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(&target.get()).context("write")?;
    response::read(&mut stream)?;
    Ok(stream)
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
