//! A TLS connection for each request, in closed loops.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use rustls::client::Resumption;
use rustls::{CipherSuite, ClientConnection, HandshakeKind, NamedGroup};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use crate::tls::{Offer, server_name};
use crate::{Target, response};

const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Parser)]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,
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

#[derive(Debug, Default)]
struct Counts {
    full: u32,
    resumed: u32,
    /// Bits of AES's key; 0 of another cipher.
    aes_bits: u32,
    /// True if the key exchange was X25519MLKEM768.
    is_hybrid: bool,
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let counts = Rc::new(RefCell::new(Counts::default()));
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let (clients, resume) = (options.clients, options.resume);
    let tasks = (0..clients).map(|_| {
        let client = client(options.clone(), Rc::clone(&counts), until);
        tokio::task::spawn_local(client)
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }
    let Counts {
        full,
        resumed,
        aes_bits,
        is_hybrid,
    } = counts.take();
    ensure!(
        !resume || full <= clients,
        "only {resumed} of {} handshakes were resumed",
        full + resumed
    );
    Ok(json!({
        "complete": full + resumed,
        "full": full,
        "resumed": resumed,
        "aes_bits": aes_bits,
        "hybrid": u32::from(is_hybrid),
    }))
}

/// Opens one connection after the other, with tickets of its own, so that each finds the one of the
/// last.
async fn client(
    options: Options,
    counts: Rc<RefCell<Counts>>,
    until: Instant,
) -> anyhow::Result<()> {
    let mut config = options.offer.config()?;
    if !options.resume {
        config.resumption = Resumption::disabled();
    }
    let connector = TlsConnector::from(Arc::new(config));
    let request = options.target.request("GET", "Connection: close\r\n", "");
    while Instant::now() < until {
        let exchange = exchange(&options.target, &connector, &request, &counts);
        let done = timeout(CONNECTION_TIMEOUT, exchange).await;
        done.context("no response in time")??;
    }
    Ok(())
}

/// Asks once, and reads until the server ends the connection.
async fn exchange(
    target: &Target,
    connector: &TlsConnector,
    request: &[u8],
    counts: &RefCell<Counts>,
) -> anyhow::Result<()> {
    let stream = target.connect(0, 1).await.context("connect")?;
    let name = server_name(target.address);
    let mut stream = connector.connect(name, stream).await.context("handshake")?;
    stream.write_all(request).await.context("write")?;
    let head = response::read(&mut stream).await.context("read")?;
    ensure!(head.status == 200, "{head:?}");
    // Its end may come without TLS's own end; the response is whole in any case.
    let _ = stream.read(&mut [0; 64]).await;
    counts.borrow_mut().add(stream.get_ref().1);
    Ok(())
}

impl Counts {
    fn add(&mut self, connection: &ClientConnection) {
        match connection.handshake_kind() {
            Some(HandshakeKind::Resumed) => self.resumed += 1,
            _ => self.full += 1,
        }
        let suite = connection.negotiated_cipher_suite();
        self.aes_bits = match suite.map(|suite| suite.suite()) {
            Some(CipherSuite::TLS13_AES_128_GCM_SHA256) => 128,
            Some(CipherSuite::TLS13_AES_256_GCM_SHA384) => 256,
            _ => 0,
        };
        let group = connection.negotiated_key_exchange_group();
        self.is_hybrid = group.is_some_and(|group| group.name() == NamedGroup::X25519MLKEM768);
    }
}
