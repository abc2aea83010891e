//! Pebble, and the DNS server that tells it that every name is here.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tempfile::TempDir;

use crate::ports::free_port;
use crate::within;

/// Settings of an authority.
#[derive(Default)]
pub(crate) struct Options {
    /// Share of nonces that it refuses, in percent.
    pub(crate) nonces_rejected: u8,
    /// True if a name that was validated once needs no challenge again.
    pub(crate) reuses_authorizations: bool,
    /// The id and the key of the one external account, which is then required.
    pub(crate) external_account: Option<(&'static str, &'static str)>,
}

/// An authority that gives no certificate for `blocked.example`.
pub(crate) struct Ca {
    directory: TempDir,
    port: u16,
    management: u16,
    dns: u16,
    options: Options,
    /// The port at which it looks for HTTP-01 challenges.
    pub(crate) http_port: u16,
    /// The port at which it looks for TLS-ALPN-01 challenges.
    pub(crate) tls_port: u16,
    process: Option<Child>,
    log: Log,
    _dns: Ended,
}

/// The lines that a program has written.
type Log = Arc<Mutex<Vec<String>>>;

/// A process that ends with this.
struct Ended(Child);

impl Ca {
    pub(crate) fn start() -> Self {
        Self::start_with(Options::default())
    }

    pub(crate) fn start_with(options: Options) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        write_certificates(directory.path());
        let (dns, process) = start_dns();
        let mut ca = Self {
            directory,
            port: free_port(),
            management: free_port(),
            dns,
            options,
            http_port: free_port(),
            tls_port: free_port(),
            process: None,
            log: Log::default(),
            _dns: process,
        };
        ca.write_config();
        ca.run();
        ca
    }

    pub(crate) fn directory_url(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.port)
    }

    /// Returns the root by which its own server is known.
    pub(crate) fn https_root(&self) -> String {
        fs::read_to_string(self.directory.path().join("root.pem")).expect("it was written")
    }

    /// Starts it, with nothing left of what it knew.
    pub(crate) fn run(&mut self) {
        let reuse = if self.options.reuses_authorizations {
            "100"
        } else {
            "0"
        };
        let mut command = command("pebble");
        command
            .arg("-config")
            .arg(self.directory.path().join("config.json"))
            .args(["-dnsserver", &format!("127.0.0.1:{}", self.dns)])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", reuse)
            .env(
                "PEBBLE_WFE_NONCEREJECT",
                self.options.nonces_rejected.to_string(),
            );
        self.process = Some(start(&mut command, &self.log));
        wait_for(self.port);
        wait_for(self.management);
    }

    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().expect("it runs");
        process.wait().expect("it has ended");
    }

    /// Counts the orders that were begun.
    pub(crate) fn orders(&self) -> usize {
        let lines = self.log.lock().expect("nobody panicked");
        let is_order = |line: &&String| line.contains("/order-plz");
        lines.iter().filter(is_order).count()
    }

    /// Waits until its log has a line with this text.
    pub(crate) async fn logged(&self, text: &str) {
        let is_there = || {
            let lines = self.log.lock().expect("nobody panicked");
            lines.iter().any(|line| line.contains(text))
        };
        within(async {
            while !is_there() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it runs");
        kill_process(Pid::from_child(process), signal).expect("it runs");
    }

    /// Returns the root of the certificates that it gives.
    pub(crate) async fn root(&self) -> RootCertStore {
        let pem = self.manage("roots/0", Bytes::new()).await;
        roots(&pem)
    }

    /// Has it say this when it is asked for the time of the certificate's renewal.
    pub(crate) async fn suggest(&self, certificate_pem: &str, renewal_info: &str) {
        let body = json!({ "Certificate": certificate_pem, "ARIResponse": renewal_info });
        self.manage("set-renewal-info/", Bytes::from(body.to_string()))
            .await;
    }

    async fn manage(&self, path: &str, body: Bytes) -> Bytes {
        let url = format!("https://127.0.0.1:{}/{path}", self.management);
        let method = if body.is_empty() { "GET" } else { "POST" };
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header("user-agent", "the tests of greenroom-acme");
        let request = request.body(Full::new(body)).expect("a request");
        let response = Client::builder(TokioExecutor::new())
            .build(self.connector())
            .request(request)
            .await
            .expect("a response");
        let status = response.status();
        let body = response.into_body().collect().await;
        let body = body.expect("a body").to_bytes();
        assert!(status.is_success(), "{status}: {body:?}");
        body
    }

    /// Returns a client for requests of the protocol that a test makes itself.
    pub(crate) fn client(&self) -> Box<dyn HttpClient> {
        Box::new(Requests(
            Client::builder(TokioExecutor::new()).build(self.connector()),
        ))
    }

    fn connector(&self) -> HttpsConnector<HttpConnector> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots(self.https_root().as_bytes()))
            .with_no_client_auth();
        HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .build()
    }

    fn write_config(&self) {
        let file = |name| self.directory.path().join(name);
        let keys = self.options.external_account.iter().copied();
        let config = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{}", self.port),
            "managementListenAddress": format!("127.0.0.1:{}", self.management),
            "certificate": file("server.pem"),
            "privateKey": file("server.key"),
            "httpPort": self.http_port,
            "tlsPort": self.tls_port,
            "externalAccountBindingRequired": self.options.external_account.is_some(),
            "externalAccountMACKeys": keys.collect::<std::collections::HashMap<_, _>>(),
            "domainBlocklist": ["blocked.example"],
            "keyAlgorithm": "ecdsa",
            "profiles": {
                "default": { "description": "90 days", "validityPeriod": 7_776_000 },
                "shortlived": { "description": "6 days", "validityPeriod": 518_400 },
            },
        }});
        fs::write(file("config.json"), config.to_string()).expect("there is room");
    }
}

struct Requests(Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>);

impl HttpClient for Requests {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let response = self.0.request(request);
        Box::pin(async { Ok(response.await.expect("a response").into()) })
    }
}

impl Drop for Ca {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn roots(pem: &[u8]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = roots.add(certificate.expect("PEM"));
        added.expect("a root");
    }
    roots
}

/// Writes a root, and a certificate of it for the authority's own server.
fn write_certificates(directory: &Path) {
    let mut params = CertificateParams::default();
    let name = "root of a test's authority";
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let root = params.self_signed(&key).expect("it signs itself").pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    let server = params.signed_by(&key, &issuer).expect("it is signed").pem();
    for (name, text) in [
        ("root.pem", root),
        ("server.pem", server),
        ("server.key", key.serialize_pem()),
    ] {
        fs::write(directory.join(name), text).expect("there is room");
    }
}

/// Starts a DNS server that says of all names that they are at 127.0.0.1.
fn start_dns() -> (u16, Ended) {
    let (port, management) = (free_port(), free_port());
    let mut command = command("pebble-challtestsrv");
    command
        .args(["-dnsserver", &format!("127.0.0.1:{port}")])
        .args(["-management", &format!("127.0.0.1:{management}")])
        .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""])
        .args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""]);
    let process = Ended(start(&mut command, &Log::default()));
    wait_for(port);
    (port, process)
}

/// Returns a command that ends with the test's thread, however that ends.
fn command(program: &str) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/pebble");
    let path: PathBuf = path.join(program);
    assert!(
        path.is_file(),
        "{} is not installed: run `cargo xtask tools`",
        path.display()
    );
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(path);
    command
}

fn start(command: &mut Command, log: &Log) -> Child {
    let process = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut process = process.expect("setpriv of util-linux");
    let output = process.stdout.take().expect("it is piped");
    let log = Arc::clone(log);
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            log.lock().expect("nobody panicked").push(line);
        }
    });
    process
}

/// Waits until something listens at the port: the programs say that they do just before they do.
fn wait_for(port: u16) {
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < crate::DEADLINE, "nobody listens");
        thread::sleep(Duration::from_millis(5));
    }
}
