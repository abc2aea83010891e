use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use greenroom_server::{App, ConnectionInfo, RequestBody, Server, Tls};
use http::{Request, Response};
use http_body_util::Full;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::util::service_fn;

use crate::over::{NAME, client_config, tls};
use crate::rig::{Rig, app, assert_elapsed, local, settle, text, within};

/// The beginning of a first message.
const HELLO: [u8; 11] = [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];

/// An application that tells of each request what was agreed upon for its connection.
#[derive(Clone)]
pub(super) struct Telling;

impl App for Telling {
    type Body = Full<Bytes>;
    type Service = tower::util::BoxCloneService<
        Request<RequestBody>,
        Response<Full<Bytes>>,
        std::convert::Infallible,
    >;

    fn connect(&self, info: &ConnectionInfo) -> Self::Service {
        let told = info.tls.as_deref().map_or("none".to_owned(), |info| {
            let alpn = info.alpn_protocol().unwrap_or(b"-");
            format!(
                "{} {} {} {} resumed:{} certificates:{}",
                info.version(),
                info.cipher_suite(),
                info.server_name().unwrap_or("-"),
                String::from_utf8_lossy(alpn),
                info.is_resumed(),
                info.client_certificates().len(),
            )
        });
        tower::util::BoxCloneService::new(service_fn(move |_: Request<RequestBody>| {
            let told = told.clone();
            async move { Ok(Response::new(Full::from(told))) }
        }))
    }
}

/// A server with this TLS.
pub(super) fn start(tls: Tls) -> Rig {
    Rig::with(Telling, |builder| builder.tls(tls))
}

/// Connects and shakes hands.
pub(super) async fn connect(
    server: &Rig,
    config: &Arc<ClientConfig>,
) -> std::io::Result<TlsStream<UnixStream>> {
    let stream = UnixStream::connect(&server.path).await?;
    let name = ServerName::try_from(NAME).unwrap();
    TlsConnector::from(Arc::clone(config))
        .connect(name, stream)
        .await
}

/// Asks for `/`, and returns the body. The connection ends then.
pub(super) async fn ask(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
) -> String {
    let request = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    body.to_owned()
}

#[tokio::test]
async fn both_versions_are_spoken_with_aes_128() {
    within(async {
        let server = start(tls().build().unwrap());
        let config = Arc::new(client_config());
        let told = ask(connect(&server, &config).await.unwrap()).await;
        let expected = "TLSv1.3 TLS_AES_128_GCM_SHA256 server.test - resumed:false certificates:0";
        assert_eq!(told, expected);
        let mut config = client_config_of(&[&rustls::version::TLS12]);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let told = ask(connect(&server, &Arc::new(config)).await.unwrap()).await;
        let expected = "TLSv1.2 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 server.test http/1.1 \
            resumed:false certificates:0";
        assert_eq!(told, expected);
    })
    .await;
}

fn client_config_of(versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(crate::over::CERTIFICATES.root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[tokio::test]
async fn a_session_is_resumed_also_after_a_reload() {
    within(async {
        for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
            let tls = tls().build().unwrap();
            let server = start(tls.clone());
            let config = Arc::new(client_config_of(&[version]));
            let first = ask(connect(&server, &config).await.unwrap()).await;
            assert!(first.contains("resumed:false"), "{first}");
            let second = ask(connect(&server, &config).await.unwrap()).await;
            assert!(second.contains("resumed:true"), "{second}");
            assert!(second.contains(NAME), "{second}");
            tls.reload().unwrap();
            let third = ask(connect(&server, &config).await.unwrap()).await;
            assert!(third.contains("resumed:true"), "{third}");
        }
    })
    .await;
}

#[tokio::test]
async fn http_without_tls_is_told_so() {
    within(async {
        let server = start(tls().build().unwrap());
        for request in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            let mut client = UnixStream::connect(&server.path).await.unwrap();
            client.write_all(request.as_bytes()).await.unwrap();
            let mut response = String::new();
            client.read_to_string(&mut response).await.unwrap();
            assert!(
                response.starts_with("HTTP/1.1 400 Bad Request\r\n"),
                "{response}"
            );
            assert!(response.contains("this port speaks HTTPS"), "{response}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_address_without_tls_stays_so() {
    within(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plain.sock");
        let plain = greenroom_server::Address::Unix(path.clone());
        let server = Rig::with(Telling, |builder| {
            builder.tls(tls().build().unwrap()).listen_plain(plain)
        });
        let config = Arc::new(client_config());
        let told = ask(connect(&server, &config).await.unwrap()).await;
        assert!(told.starts_with("TLSv1.3"), "{told}");
        assert_eq!(ask(UnixStream::connect(path).await.unwrap()).await, "none");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_end_is_ended() {
    local(async {
        let server = start(tls().build().unwrap());
        for sent in [0, 1, 6, HELLO.len()] {
            let mut client = UnixStream::connect(&server.path).await.unwrap();
            let since = Instant::now();
            client.write_all(&HELLO[..sent]).await.unwrap();
            assert_eq!(client.read(&mut [0; 64]).await.unwrap_or(0), 0);
            assert_elapsed(since, Duration::from_secs(10));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_a_handshake_to_begin_as_for_a_request() {
    local(async {
        for sent in [0, 1, 6, HELLO.len()] {
            let server = start(tls().build().unwrap());
            let mut client = UnixStream::connect(&server.path).await.unwrap();
            client.write_all(&HELLO[..sent]).await.unwrap();
            settle().await;
            let since = Instant::now();
            server.handle.drain();
            assert_eq!(client.read(&mut [0; 64]).await.unwrap_or(0), 0);
            assert_elapsed(since, Duration::from_millis(500));
            assert_eq!(server.ended().await.aborted, []);
            assert!(since.elapsed() < Duration::from_secs(3));
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_no_handshake_gets_an_alert() {
    within(async {
        let server = start(tls().build().unwrap());
        for bytes in [
            &b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"[..],
            b"\x17\x03\x03\x00\x01\x00",
            b"\x16\x03\x01\x00\x00",
            b"\x80\x2e\x01\x03\x01",
            b"\x00\x00\x00\x00\x00\x00\x00\x00",
            b"\xff\xff\xff\xff\xff\xff",
        ] {
            let mut client = UnixStream::connect(&server.path).await.unwrap();
            client.write_all(bytes).await.unwrap();
            let mut response = Vec::new();
            client.read_to_end(&mut response).await.unwrap();
            // A fatal alert (RFC 8446, 6).
            assert!(
                matches!(response[..], [21, 3, _, 0, 2, 2, _]),
                "{response:?}"
            );
        }
        let config = Arc::new(client_config());
        assert!(connect(&server, &config).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_client_learns_of_the_end() {
    within(async {
        let server = Rig::with(app(async |_| Ok(text("hello"))), |builder| {
            builder.tls(tls().build().unwrap())
        });
        let config = Arc::new(client_config());
        // `read_to_string` of rustls fails at an end without notice.
        assert_eq!(ask(connect(&server, &config).await.unwrap()).await, "hello");
        let mut idle = connect(&server, &config).await.unwrap();
        server.handle.drain();
        assert_eq!(idle.read(&mut [0; 64]).await.unwrap(), 0);
    })
    .await;
}

#[test]
fn settings_without_a_certificate_are_refused() {
    let error = Tls::builder().build().unwrap_err().to_string();
    assert!(error.contains("needs a certificate"), "{error}");
    assert!(Server::builder().listen("127.0.0.1:0").bind().is_ok());
}
