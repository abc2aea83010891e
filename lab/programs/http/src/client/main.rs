//! The clients of the experiments with HTTP that a load of requests cannot be. Each prints one line
//! of JSON at its end. Load goes to loopback only, and is bounded in count and time.

mod busy;
mod flood;
mod handshakes;
mod idle;
mod posters;
mod response;
mod tls;

use std::net::{Ipv4Addr, SocketAddrV4};

use clap::{Args, Parser, Subcommand};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    client: Client,
}

#[derive(Debug, Subcommand)]
enum Client {
    /// Opens connections, has one response on each, and holds them
    Idle(idle::Options),
    /// Opens TLS connections in closed loops, one request on each
    Handshakes(handshakes::Options),
    /// Begins handshakes and does not go on
    Flood(flood::Options),
    /// Posts until the server ends, which it is told in the midst of it
    Posters(posters::Options),
    /// The least latency that a client can see: one connection, never asleep
    Busy(busy::Options),
}

/// The target of a client.
#[derive(Clone, Debug, Args)]
struct Target {
    /// Address of the server, on loopback
    #[arg(value_parser = loopback)]
    address: SocketAddrV4,
    /// Path of the requests
    #[arg(default_value = "/hello")]
    path: String,
}

fn main() -> anyhow::Result<()> {
    let client = Options::parse().client;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let told = LocalSet::new().block_on(&runtime, async {
        match client {
            Client::Idle(options) => idle::run(&options).await,
            Client::Handshakes(options) => handshakes::run(&options).await,
            Client::Flood(options) => flood::run(&options).await,
            Client::Posters(options) => posters::run(&options).await,
            Client::Busy(options) => busy::run(&options),
        }
    })?;
    println!("{told}");
    Ok(())
}

fn loopback(text: &str) -> Result<SocketAddrV4, String> {
    let address: SocketAddrV4 = text
        .parse()
        .map_err(|_| format!("expected an IPv4 address and a port, not {text:?}"))?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("load goes only to loopback addresses".to_owned())
    }
}

impl Target {
    /// Connects from 127.0.0.2, .3, … in turn, when one address has too few ports.
    async fn connect(&self, index: u32, sources: u8) -> anyhow::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        if sources > 1 {
            let step = u8::try_from(index % u32::from(sources))?;
            let source = Ipv4Addr::new(127, 0, 0, step.saturating_add(2));
            socket.bind(SocketAddrV4::new(source, 0).into())?;
        }
        let stream = socket.connect(self.address.into()).await?;
        // Else a request waits until the end of the handshake is acknowledged, 40 ms later.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Returns a request with these fields, each with its end of line.
    fn request(&self, method: &str, fields: &str, body: &str) -> Vec<u8> {
        let Self { address, path } = self;
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n{body}").into_bytes()
    }
}
