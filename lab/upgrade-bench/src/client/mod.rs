//! The kinds of clients, all in one runtime, and the load that they make together.

mod connection;
mod exchange;
mod http1;
mod http2;
mod http3;
mod transfer;
mod websocket;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::ValueEnum;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::counts::Counts;
use http1::{BUSY, SELDOM};
use transfer::Direction;

/// The body of `/hello`.
pub(crate) const HELLO: &str = "Hello, world!\n";
/// After as many bytes of a download its content begins again.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;
/// The body of an upload at once.
const UPLOAD_BYTES: usize = 16_000;
/// The pause after a failure, so that a server that is gone makes thousands of them and not
/// millions.
const FAILURE_PAUSE: Duration = Duration::from_millis(200);

/// A kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    KeepAlive,
    Seldom,
    Close,
    Post,
    Tls,
    Http2,
    Http3,
    Http3Downloads,
    Websocket,
    Uploads,
    Downloads,
    Psgi,
}

/// The addresses of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) plain: SocketAddr,
    /// The same as `plain` if the server speaks no TLS: nobody connects there then.
    pub(crate) tls: SocketAddr,
    /// The path of its PSGI application, without a slash at its end.
    pub(crate) psgi: &'static str,
}

/// One client's view of the load.
#[derive(Clone)]
struct Load {
    target: Target,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    http3: Arc<ClientConfig>,
    ends: watch::Receiver<bool>,
    begin: Instant,
    transfer: Duration,
}

/// The requests of one client of HTTP/1.1.
struct Shape {
    path: String,
    body: Option<usize>,
    expected: String,
    pause_max: Duration,
    keeps: bool,
    over_tls: bool,
}

/// The running clients of all kinds.
pub(crate) struct Clients {
    tasks: JoinSet<(Kind, Counts)>,
    end: watch::Sender<bool>,
}

impl Kind {
    /// Returns the heading in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KeepAlive => "keep-alive",
            Self::Seldom => "seldom",
            Self::Close => "close",
            Self::Post => "POST",
            Self::Tls => "TLS",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
            Self::Http3Downloads => "HTTP/3 downloads",
            Self::Websocket => "WebSocket",
            Self::Uploads => "uploads",
            Self::Downloads => "downloads",
            Self::Psgi => "PSGI",
        }
    }

    /// Returns the number of its clients.
    fn clients(self) -> usize {
        match self {
            Self::KeepAlive => 12,
            Self::Seldom => 24,
            Self::Tls | Self::Websocket => 6,
            Self::Close | Self::Post | Self::Http2 | Self::Http3 | Self::Psgi => 4,
            Self::Uploads | Self::Downloads | Self::Http3Downloads => 3,
        }
    }

    async fn run(self, load: Load, index: usize) -> Counts {
        // A transfer of each direction begins every third of its time.
        let delay = [0.0, 1.0 / 3.0, 2.0 / 3.0][index % 3];
        match self {
            Self::Http2 => http2::run(load).await,
            // Every second one has a connection for each request.
            Self::Http3 => http3::run(load, index.is_multiple_of(2)).await,
            Self::Http3Downloads => http3::download(load, delay).await,
            Self::Websocket => websocket::run(load).await,
            Self::Uploads => transfer::run(load, Direction::Up, delay).await,
            Self::Downloads => transfer::run(load, Direction::Down, delay).await,
            _ => {
                let shape = self.shape(&load, index);
                http1::run(load, shape).await
            }
        }
    }

    fn shape(self, load: &Load, index: usize) -> Shape {
        let is_odd = index % 2 == 1;
        let posts = self == Self::Post || (self == Self::Psgi && is_odd);
        let path = if posts { "/upload" } else { "/hello" };
        let prefix = if self == Self::Psgi {
            load.target.psgi
        } else {
            ""
        };
        Shape {
            path: format!("{prefix}{path}"),
            body: posts.then_some(UPLOAD_BYTES),
            expected: if posts {
                format!("\"bytes\":{UPLOAD_BYTES}")
            } else {
                HELLO.to_owned()
            },
            pause_max: if self == Self::Seldom { SELDOM } else { BUSY },
            // One TLS client in two has a connection, and so a handshake, for each request.
            keeps: self != Self::Close && !(self == Self::Tls && is_odd),
            over_tls: self == Self::Tls,
        }
    }
}

impl Shape {
    fn address(&self, load: &Load) -> SocketAddr {
        if self.over_tls {
            load.target.tls
        } else {
            load.target.plain
        }
    }

    fn tls<'a>(&self, load: &'a Load) -> Option<&'a Arc<ClientConfig>> {
        self.over_tls.then_some(&load.http1)
    }

    fn request(&self, load: &Load) -> Vec<u8> {
        let host = self.address(load);
        let method = if self.body.is_some() { "POST" } else { "GET" };
        let mut text = format!("{method} {} HTTP/1.1\r\nHost: {host}\r\n", self.path);
        if !self.keeps {
            text.push_str("Connection: close\r\n");
        }
        if let Some(length) = self.body {
            let fields = format!("Content-Type: text/plain\r\nContent-Length: {length}\r\n");
            text.push_str(&fields);
        }
        text.push_str("\r\n");
        text.push_str(&"a".repeat(self.body.unwrap_or(0)));
        text.into_bytes()
    }
}

impl Load {
    fn goes_on(&self) -> bool {
        !*self.ends.borrow()
    }

    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Waits for a random part of a time, and longer after a failure.
    async fn pause(&self, max: Duration, has_failed: bool) {
        let failure = if has_failed {
            FAILURE_PAUSE
        } else {
            Duration::ZERO
        };
        self.wait(max.mul_f64(fastrand::f64()) + failure).await;
    }

    /// Waits, but not beyond the end of the load.
    async fn wait(&self, time: Duration) {
        let mut ends = self.ends.clone();
        let _either = tokio::time::timeout(time, ends.wait_for(|ends| *ends)).await;
    }
}

impl Clients {
    /// Starts the clients of these kinds, which trust this certificate.
    ///
    /// # Errors
    /// If the certificate cannot be read.
    pub(crate) fn start(
        target: Target,
        certificate: &Path,
        kinds: &[Kind],
        transfer: Duration,
    ) -> anyhow::Result<Self> {
        let (end, ends) = watch::channel(false);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certificate).context("the certificate")?)?;
        let roots = Arc::new(roots);
        let tls = |protocol| tls_of(Arc::clone(&roots), protocol);
        let load = Load {
            target,
            http1: tls("http/1.1")?,
            http2: tls("h2")?,
            http3: tls("h3")?,
            ends,
            begin: Instant::now(),
            transfer,
        };
        let mut tasks = JoinSet::new();
        for &kind in kinds {
            for index in 0..kind.clients() {
                let load = load.clone();
                tasks.spawn(async move { (kind, kind.run(load, index).await) });
            }
        }
        Ok(Self { tasks, end })
    }

    /// Ends the load after the requests that are under way, and returns what happened.
    ///
    /// # Errors
    /// If a client panicked.
    pub(crate) async fn end(mut self) -> anyhow::Result<BTreeMap<Kind, Counts>> {
        self.end.send_replace(true);
        let mut counts: BTreeMap<Kind, Counts> = BTreeMap::new();
        while let Some(ended) = self.tasks.join_next().await {
            let (kind, of_one) = ended.context("a client")?;
            counts.entry(kind).or_default().add(of_one);
        }
        Ok(counts)
    }
}

/// Returns what a browser offers, but for the protocol.
fn tls_of(roots: Arc<RootCertStore>, protocol: &str) -> anyhow::Result<Arc<ClientConfig>> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Ok(Arc::new(config))
}
