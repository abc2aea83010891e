//! Opens TLS connections in closed loops, one request on each, for a limited time, and counts.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser;
use http_bench_clients::{Handshakes, Offer, Target, response, server_name};
use rustls::client::Resumption;
use rustls::{ClientConnection, HandshakeKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_BYTES_MAX: u64 = 16 * 1024;

#[derive(Debug, Parser)]
struct Options {
    /// <https://127.0.0.1:PORT/PATH>
    #[arg(long)]
    url: Target,
    /// Number of clients, each with one connection after the other
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clients: u32,
    /// Seconds in which connections are opened
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=30))]
    seconds: u64,
    /// Cipher suites and key exchange
    #[arg(long, value_enum, default_value_t = Offer::Openssl)]
    offer: Offer,
    /// Resume the session of the connection before, after one full handshake for each client
    #[arg(long)]
    resume: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let counts = LocalSet::new().block_on(&runtime, run(Rc::new(options)))?;
    serde_json::to_writer(io::stdout(), &counts).context("standard output")
}

async fn run(options: Rc<Options>) -> anyhow::Result<Handshakes> {
    let counts = Rc::new(RefCell::new(Handshakes::default()));
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let mut clients = Vec::new();
    for _ in 0..options.clients {
        let client = Client::new(&options, &counts)?;
        clients.push(tokio::task::spawn_local(client.run(until)));
    }
    for client in clients {
        client.await?;
    }
    Ok(counts.take())
}

struct Client {
    options: Rc<Options>,
    connector: TlsConnector,
    request: Vec<u8>,
    counts: Rc<RefCell<Handshakes>>,
}

impl Client {
    /// Creates a client with tickets of its own, so that each finds the one of its last connection.
    fn new(options: &Rc<Options>, counts: &Rc<RefCell<Handshakes>>) -> anyhow::Result<Self> {
        let mut config = options.offer.config()?;
        if !options.resume {
            config.resumption = Resumption::disabled();
        }
        Ok(Self {
            options: Rc::clone(options),
            connector: TlsConnector::from(Arc::new(config)),
            request: options.url.get_last(),
            counts: Rc::clone(counts),
        })
    }

    async fn run(self, until: Instant) {
        while Instant::now() < until {
            let connection = timeout(CONNECTION_TIMEOUT, self.connection()).await;
            let outcome = connection
                .context("no response in time")
                .and_then(|done| done);
            let mut counts = self.counts.borrow_mut();
            match outcome {
                Ok(stream) => count(&mut counts, stream.get_ref().1),
                Err(error) => {
                    counts.failed += 1;
                    counts.first_failure.get_or_insert(format!("{error:#}"));
                }
            }
        }
    }

    /// Asks once, and reads until the server ends the connection.
    async fn connection(&self) -> anyhow::Result<TlsStream<TcpStream>> {
        let target = &self.options.url;
        let stream = TcpStream::connect(target.address)
            .await
            .context("connect")?;
        stream.set_nodelay(true)?;
        let name = server_name(target);
        let mut stream = self.connector.connect(name, stream).await?;
        stream.write_all(&self.request).await.context("write")?;
        let mut response = Vec::new();
        let read = (&mut stream)
            .take(RESPONSE_BYTES_MAX)
            .read_to_end(&mut response)
            .await;
        match read {
            Ok(_) => {}
            // The response's length tells whether it is whole.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
            Err(error) => bail!("read: {error}"),
        }
        response::check(&response)?;
        Ok(stream)
    }
}

fn count(counts: &mut Handshakes, connection: &ClientConnection) {
    match connection.handshake_kind() {
        Some(HandshakeKind::Resumed) => counts.resumed += 1,
        _ => counts.full += 1,
    }
    let suite = connection.negotiated_cipher_suite();
    let group = connection.negotiated_key_exchange_group();
    counts.agreed = suite.zip(group).map(|(suite, group)| {
        let suite = format!("{:?}", suite.suite());
        format!("{}, {:?}", suite.replace("TLS13_", ""), group.name())
    });
}
