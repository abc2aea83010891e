//! The site whose certificates are tested: plain HTTP and TLS at the ports that the authority
//! looks at.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_acme::{ACME_TLS_ALPN, Acme, Certificates, Http01, PATH_PREFIX};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tower::{Layer, ServiceExt};

use crate::ca::Ca;
use crate::within;

/// The servers of a site, which end with this.
#[derive(Default)]
pub(crate) struct Site {
    tasks: JoinSet<()>,
    gate: Arc<Gate>,
}

/// Holds challenges by HTTP up, if a test wants it to.
pub(crate) struct Gate {
    /// Told when the authority asks.
    pub(crate) asked: Notify,
    /// A permit for each response.
    pub(crate) responses: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            asked: Notify::new(),
            responses: Semaphore::new(Semaphore::MAX_PERMITS),
        }
    }
}

impl Site {
    /// Serves both ports.
    pub(crate) async fn start(ca: &Ca, acme: &Acme) -> Self {
        let mut site = Self::default();
        site.serve_http(ca, acme).await;
        site.serve_tls(ca, acme).await;
        site
    }

    /// Serves neither yet; challenges by HTTP wait for the gate.
    pub(crate) fn held_by(gate: &Arc<Gate>) -> Self {
        Self {
            tasks: JoinSet::new(),
            gate: Arc::clone(gate),
        }
    }

    /// Ends, and waits until the ports are free.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }

    pub(crate) async fn serve_http(&mut self, ca: &Ca, acme: &Acme) {
        self.serve_http_by(ca, acme.http01()).await;
    }

    pub(crate) async fn serve_tls(&mut self, ca: &Ca, acme: &Acme) {
        self.serve_tls_by(ca, acme.certificates()).await;
    }

    pub(crate) async fn serve_http_by(&mut self, ca: &Ca, http01: Http01) {
        let listener = TcpListener::bind(("127.0.0.1", ca.http_port)).await;
        let listener = listener.expect("the port is free");
        let gate = Arc::clone(&self.gate);
        self.tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(http_connection(stream, http01.clone(), Arc::clone(&gate)));
            }
        });
    }

    pub(crate) async fn serve_tls_by(&mut self, ca: &Ca, certificates: Arc<Certificates>) {
        let listener = TcpListener::bind(("127.0.0.1", ca.tls_port)).await;
        let listener = listener.expect("the port is free");
        let acceptor = acceptor(certificates);
        self.tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(tls_connection(stream, acceptor.clone()));
            }
        });
    }
}

async fn http_connection(stream: TcpStream, http01: Http01, gate: Arc<Gate>) {
    let application = tower::service_fn(async |_: Request<hyper::body::Incoming>| {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("the application"))))
    });
    let service = http01.layer(application);
    let held = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
        let (service, gate) = (service.clone(), Arc::clone(&gate));
        async move {
            if request.uri().path().starts_with(PATH_PREFIX) {
                gate.asked.notify_one();
                let _permit = gate.responses.acquire().await;
            }
            service.oneshot(request).await
        }
    });
    let service = TowerToHyperService::new(held);
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // The authority may leave whenever it likes.
    let _ = connection.await;
}

fn acceptor(certificates: Arc<Certificates>) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"http/1.1".to_vec(), ACME_TLS_ALPN.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Sends back what it gets.
async fn tls_connection(stream: TcpStream, acceptor: TlsAcceptor) {
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    if stream.get_ref().1.alpn_protocol() == Some(ACME_TLS_ALPN) {
        return;
    }
    let mut bytes = [0; 64];
    while let Ok(length @ 1..) = stream.read(&mut bytes).await {
        if stream.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

/// Connects by TLS to the site at `name`.
pub(crate) async fn connect(
    ca: &Ca,
    name: &str,
    roots: RootCertStore,
) -> io::Result<TlsStream<TcpStream>> {
    connect_as(
        ca,
        ServerName::try_from(name.to_owned()).expect("a name"),
        roots,
        &[],
    )
    .await
}

pub(crate) async fn connect_as(
    ca: &Ca,
    name: ServerName<'static>,
    roots: RootCertStore,
    protocols: &[&[u8]],
) -> io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(("127.0.0.1", ca.tls_port)).await?;
    within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

/// Sends bytes, and waits until they come back.
pub(crate) async fn echo(stream: &mut TlsStream<TcpStream>) {
    within(stream.write_all(b"on the line"))
        .await
        .expect("sent");
    let mut back = [0; 11];
    within(stream.read_exact(&mut back))
        .await
        .expect("received");
    assert_eq!(&back, b"on the line");
}

/// Returns the certificate that the server has shown.
pub(crate) fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    let chain = stream.get_ref().1.peer_certificates().expect("it has one");
    chain[0].clone()
}

/// Returns its serial number in hexadecimal digits.
pub(crate) fn serial(certificate: &CertificateDer<'_>) -> String {
    let parsed = x509_parser::parse_x509_certificate(certificate).expect("X.509");
    parsed.1.raw_serial_as_string().replace(':', "")
}

/// Asks the site by plain HTTP. Returns the status and the body.
pub(crate) async fn get(ca: &Ca, host: &str, path: &str) -> (u16, String) {
    let stream = TcpStream::connect(("127.0.0.1", ca.http_port)).await;
    let io = TokioIo::new(stream.expect("it listens"));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io)
        .await
        .expect("a connection");
    tokio::spawn(connection);
    let request = Request::get(path).header("host", host);
    let request = request.body(Full::<Bytes>::default()).expect("a request");
    let response = within(sender.send_request(request))
        .await
        .expect("a response");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body");
    let text = String::from_utf8(body.to_bytes().to_vec()).expect("text");
    (status, text)
}
