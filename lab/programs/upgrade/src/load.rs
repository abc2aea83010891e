//! The clients of one server, all in one thread, and what they count.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, value_parser};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::failure::{Failed, Failure, within};
use crate::kind::Kind;
use crate::upgrades::Upgrades;
use crate::{Figures, loopback};

/// Load before the first upgrade and after the last one.
const ALONE: Duration = Duration::from_secs(3);
/// A server whose one address accepts connections opens the other in this time.
const LISTENING_MAX: Duration = Duration::from_mins(1);
/// The pause after a failure, so that a server that is gone makes thousands of them and not
/// millions.
const FAILURE_PAUSE: Duration = Duration::from_millis(200);
/// A transfer may take this much longer than planned.
const GRACE: Duration = Duration::from_secs(30);
/// Connections on which one request is tried that none of them begins.
pub(crate) const TRIES_MAX: usize = 5;
/// Failures of each kind and client that are told in words.
const EXAMPLES_MAX: f64 = 3.0;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Address of the server
    #[arg(value_parser = loopback)]
    pub(crate) plain: SocketAddr,
    /// Its address for TLS and QUIC
    #[arg(long, value_parser = loopback)]
    pub(crate) tls: SocketAddr,
    /// The certificate that is trusted
    #[arg(long)]
    certificate: PathBuf,
    /// The path of its PSGI application, without a slash at its end
    #[arg(long, default_value = "")]
    pub(crate) psgi: String,
    /// Kinds of clients
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    kinds: Vec<Kind>,
    /// Seconds that each upload and download takes
    #[arg(long, value_parser = value_parser!(u64).range(1..=30))]
    transfer: u64,
    #[command(flatten)]
    upgrades: Upgrades,
}

/// The place of one client in the load.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) options: Rc<Options>,
    pub(crate) kind: Kind,
    pub(crate) index: usize,
    trusted: Arc<RootCertStore>,
    figures: Rc<RefCell<Figures>>,
    ends: watch::Receiver<bool>,
    begin: Instant,
}

/// The reason why a request had no response.
pub(crate) enum Fault {
    /// The server has not begun it: it may be sent again.
    NotBegun,
    Failed(Failed),
}

/// Upgrades a server under load, and returns what was counted.
///
/// # Errors
/// If the server does not listen, an upgrade does not do what it should, or a client panics.
pub(crate) async fn run(options: Options) -> anyhow::Result<Figures> {
    options.wait_until_it_listens().await?;
    let mut trusted = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(&options.certificate);
    trusted.add(certificate.context("the certificate")?)?;
    let (end, ends) = watch::channel(false);
    let mut client = Client {
        kind: Kind::KeepAlive,
        index: 0,
        trusted: Arc::new(trusted),
        figures: Rc::new(RefCell::new(options.zeros())),
        ends,
        begin: Instant::now(),
        options: Rc::new(options),
    };
    let mut clients = JoinSet::new();
    for &kind in &Rc::clone(&client.options).kinds {
        for index in 0..kind.clients() {
            (client.kind, client.index) = (kind, index);
            let client = client.clone();
            clients.spawn_local(async move { client.kind.run(&client).await });
        }
    }
    sleep(ALONE).await;
    let plan = client.options.upgrades.clone();
    let upgraded = spawn_blocking(move || plan.run()).await??;
    sleep(ALONE).await;
    end.send_replace(true);
    while let Some(ended) = clients.join_next().await {
        ended.context("a client")?;
    }
    let mut figures = client.figures.take();
    figures.extend(upgraded);
    Ok(figures)
}

impl Options {
    /// Has a server's second address accept connections, too.
    async fn wait_until_it_listens(&self) -> anyhow::Result<()> {
        if !self.kinds.iter().any(|kind| kind.is_over_tls()) {
            return Ok(());
        }
        let accepts = async {
            while TcpStream::connect(self.tls).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let accepted = timeout(LISTENING_MAX, accepts).await;
        accepted.with_context(|| format!("nobody listens at {}", self.tls))
    }

    /// Returns the counts of a load in which nothing happened.
    fn zeros(&self) -> Figures {
        let mut names: Vec<String> = ["refused", "reset", "ended", "wrong", "late", "retried"]
            .map(str::to_owned)
            .into();
        for what in ["requests", "failed", "reopened"] {
            names.push(what.to_owned());
            let of_kinds = self.kinds.iter();
            names.extend(of_kinds.map(|kind| format!("{}_{what}", kind.name())));
        }
        names.into_iter().map(|name| (name, 0.0)).collect()
    }
}

impl Client {
    /// Returns what a browser offers, but for the protocol.
    pub(crate) fn tls(&self, protocol: &str) -> ClientConfig {
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has suites for them")
            .with_root_certificates(Arc::clone(&self.trusted))
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        config
    }

    pub(crate) fn goes_on(&self) -> bool {
        !*self.ends.borrow()
    }

    /// Does something again and again until the load ends, with pauses of a random part of a time,
    /// and counts it.
    pub(crate) async fn repeat(
        &self,
        pause: Duration,
        mut once: impl AsyncFnMut() -> Result<(), Failed>,
    ) {
        while self.goes_on() {
            let outcome = once().await;
            let more = outcome.as_ref().map_or(FAILURE_PAUSE, |()| Duration::ZERO);
            self.count(outcome);
            self.wait(pause.mul_f64(fastrand::f64()) + more).await;
        }
    }

    /// Makes one transfer after the other until the load ends; the last one goes on to its end. Of
    /// three clients each begins a third of a transfer later.
    pub(crate) async fn transfers(&self, mut once: impl AsyncFnMut() -> Result<(), Failed>) {
        let third = self.transfer() / 3;
        self.wait(third.mul_f64([0.0, 1.0, 2.0][self.index % 3]))
            .await;
        let in_time = async || within(self.transfer() + GRACE, once()).await;
        self.repeat(Duration::from_millis(250), in_time).await;
    }

    /// Has a request begun on one of several connections.
    pub(crate) async fn begun<T>(
        &self,
        mut attempt: impl AsyncFnMut() -> Result<T, Fault>,
    ) -> Result<T, Failed> {
        for _ in 0..TRIES_MAX {
            match attempt().await {
                Ok(begun) => return Ok(begun),
                Err(Fault::Failed(failed)) => return Err(failed),
                Err(Fault::NotBegun) => self.add("retried"),
            };
        }
        Err(Failure::Refused.by(format!("{TRIES_MAX} connections did not begin it")))
    }

    /// Returns the time that a transfer takes.
    pub(crate) fn transfer(&self) -> Duration {
        Duration::from_secs(self.options.transfer)
    }

    /// Counts one request by its end.
    pub(crate) fn count(&self, outcome: Result<(), Failed>) {
        self.add("requests");
        if let Err(Failed(failure, why)) = outcome {
            self.add("failed");
            if self.add(&format!("{failure:?}").to_lowercase()) <= EXAMPLES_MAX {
                let seconds = self.begin.elapsed().as_secs_f64();
                eprintln!("{:?} at {seconds:.2} s: {failure:?}: {why}", self.kind);
            }
        }
    }

    /// Adds one to a figure, and to that of its kind; returns the latter.
    pub(crate) fn add(&self, what: &str) -> f64 {
        let mut figures = self.figures.borrow_mut();
        *figures.entry(what.to_owned()).or_default() += 1.0;
        let of_kind = format!("{}_{what}", self.kind.name());
        let of_kind = figures.entry(of_kind).or_default();
        *of_kind += 1.0;
        *of_kind
    }

    /// Keeps the longest time of its kind.
    pub(crate) fn longest(&self, time: Duration) {
        let name = format!("{}_longest_ms", self.kind.name());
        let mut figures = self.figures.borrow_mut();
        let longest = figures.entry(name).or_default();
        *longest = longest.max(time.as_secs_f64() * 1e3);
    }

    /// Waits, but not beyond the end of the load.
    async fn wait(&self, time: Duration) {
        let mut ends = self.ends.clone();
        let _either = timeout(time, ends.wait_for(|ends| *ends)).await;
    }
}

impl From<Failed> for Fault {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}
