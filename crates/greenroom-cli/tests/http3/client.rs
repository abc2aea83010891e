//! h3's client over quinn.

use std::fs;
use std::future::poll_fn;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3_quinn::{BidiStream, OpenStreams};
use http::Request;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::rustls::pki_types::CertificateDer;
use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::{ClientConfig, RootCertStore};
use quinn::{Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};

/// The server's name in its certificate.
pub(crate) const NAME: &str = "localhost";
/// So little of a response is on its way unread that most of a download waits for its client.
const WINDOW_BYTES: u32 = 64 * 1_024;
/// After as many bytes the content of `/bytes/N` begins again.
const CHUNK_BYTES: usize = 64 * 1_024;
const LINE: &[u8] = b"abcdefghijklmnopqrstuvwxyz\n";

pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

/// A socket of clients, which may have many connections.
pub(crate) fn endpoint() -> Endpoint {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let runtime = Arc::new(TokioRuntime);
    Endpoint::new(EndpointConfig::default(), None, socket, runtime).unwrap()
}

/// Returns the settings of a client that trusts a certificate.
pub(crate) fn trusting(certificate: &str) -> quinn::ClientConfig {
    let pem = fs::read(certificate).unwrap();
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(&pem).unwrap())
        .unwrap();
    let provider = Arc::new(quinn::rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicClientConfig::try_from(tls).unwrap();
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(WINDOW_BYTES));
    config.transport_config(Arc::new(transport));
    config
}

/// A connection.
pub(crate) struct Client {
    pub(crate) connection: quinn::Connection,
    send: SendRequest<OpenStreams, Bytes>,
}

impl Client {
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        config: quinn::ClientConfig,
        address: SocketAddr,
    ) -> Result<Self, Fault> {
        let connection = endpoint.connect_with(config, address, NAME)?.await?;
        let quic = h3_quinn::Connection::new(connection.clone());
        let (mut driver, send) = h3::client::new(quic).await?;
        tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
        Ok(Self { connection, send })
    }

    /// Sends a request, and returns its response once its head has come.
    pub(crate) async fn begin(&mut self, path: &str) -> Result<Download, Fault> {
        let request = Request::get(format!("https://{NAME}{path}")).body(())?;
        let mut stream = self.send.send_request(request).await?;
        stream.finish().await?;
        let head = stream.recv_response().await?;
        if head.status() != 200 {
            return Err(head.status().to_string().into());
        }
        Ok(Download { stream, read: 0 })
    }

    /// Returns the body of a response.
    pub(crate) async fn get(&mut self, path: &str) -> Result<String, Fault> {
        let mut download = self.begin(path).await?;
        let mut body = Vec::new();
        while let Some(mut data) = download.stream.recv_data().await? {
            body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        Ok(String::from_utf8(body)?)
    }
}

/// A response of `/bytes/N` that is under way.
pub(crate) struct Download {
    stream: RequestStream<BidiStream<Bytes>, Bytes>,
    read: usize,
}

impl Download {
    /// Reads until so many bytes have come, or all; each must be the right one.
    pub(crate) async fn read_up_to(&mut self, bytes: usize) -> Result<usize, Fault> {
        while self.read < bytes {
            let Some(mut data) = self.stream.recv_data().await? else {
                break;
            };
            for byte in data.copy_to_bytes(data.remaining()) {
                let expected = LINE[self.read % CHUNK_BYTES % LINE.len()];
                assert_eq!(byte, expected, "at {}", self.read);
                self.read += 1;
            }
        }
        Ok(self.read)
    }

    /// Reads the rest: the length of the whole.
    pub(crate) async fn finish(mut self) -> usize {
        self.read_up_to(usize::MAX).await.unwrap()
    }
}
