//! Upstreams with TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::serve::Listener;
use futures_util::{SinkExt, StreamExt};
use greenroom_proxy::{HostHeader, Proxy, Settings};
use greenroom_server::rustls::crypto::ring::default_provider;
use greenroom_server::rustls::pki_types::pem::PemObject;
use greenroom_server::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use greenroom_server::rustls::server::WebPkiClientVerifier;
use greenroom_server::rustls::{RootCertStore, ServerConfig};
use greenroom_timing::{FinishedSpan, Span, SpanObserver, SpanValue, Timing};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tower::ServiceExt;

use crate::authority::Authority;
use crate::log;
use crate::rig::{Rig, body_of, read_to, send, status_of, to, until, within};
use crate::upgrades::chatting;
use crate::upstreams::{Scripted, echo};

/// The TLS of a server with the certificate in `file`, which may ask its clients for one.
fn acceptor(authority: &Authority, file: &str, asks: bool) -> TlsAcceptor {
    let provider = Arc::new(default_provider());
    let certificates = |file: &str| {
        let read = CertificateDer::pem_file_iter(authority.path(file)).unwrap();
        read.map(Result::unwrap).collect::<Vec<_>>()
    };
    let key = PrivateKeyDer::from_pem_file(authority.path(&format!("{file}.key"))).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates("root.pem"));
    let verifier = if asks {
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
        verifier.build().unwrap()
    } else {
        WebPkiClientVerifier::no_client_auth()
    };
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(&format!("{file}.pem")), key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// The counts of what has come to an upstream.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    handshakes: AtomicUsize,
}

/// A listener with TLS.
struct Secured {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
    seen: Arc<Seen>,
}

impl Listener for Secured {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            self.seen.connections.fetch_add(1, Ordering::Relaxed);
            if let Ok(stream) = self.acceptor.accept(stream).await {
                self.seen.handshakes.fetch_add(1, Ordering::Relaxed);
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// Starts an application behind TLS, and returns its port.
async fn serve(app: Router, acceptor: TlsAcceptor) -> (u16, Arc<Seen>) {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = tcp.local_addr().unwrap().port();
    let seen = Arc::<Seen>::default();
    let listener = Secured {
        tcp,
        acceptor,
        seen: Arc::clone(&seen),
    };
    tokio::spawn(async move { axum::serve(listener, app).await });
    (port, seen)
}

fn settings(authority: &Authority, host: &str, port: u16) -> Settings {
    Settings {
        to: vec![format!("https://{host}:{port}").parse().unwrap()],
        tls_ca: Some(authority.path("root.pem")),
        ..to([])
    }
}

#[tokio::test]
async fn requests_go_on_with_their_bodies() {
    within(async {
        let authority = Authority::new();
        authority.issue("own", "localhost");
        let (port, _) = serve(echo(), acceptor(&authority, "own", false)).await;
        let rig = Rig::with(Settings {
            host: HostHeader::Upstream,
            ..settings(&authority, "localhost", port)
        });
        let body = "x".repeat(300_000);
        let response = rig.exchange(send("POST", "/a%2Fb?c", &body)).await;
        assert_eq!(status_of(&response), 200);
        assert!(response.contains("POST /a%2Fb?c\n"), "{response:.500}");
        assert!(response.contains(&format!("host: localhost:{port}\n")));
        let echoed = response.bytes().filter(|byte| *byte == b'x').count();
        assert!(echoed >= body.len(), "{echoed}");
        assert_eq!(rig.upstream(0).failures.total(), 0);
        rig.end().await;
    })
    .await;
}

/// Keeps the spans that are over.
#[derive(Debug, Default)]
struct Kept(Mutex<Vec<FinishedSpan>>);

impl SpanObserver for Kept {
    fn on_span(&self, span: FinishedSpan) {
        self.0.lock().push(span);
    }

    fn on_omitted(&self) {}
}

#[tokio::test]
async fn the_span_of_a_request_names_the_scheme() {
    within(async {
        let authority = Authority::new();
        authority.issue("own", "localhost");
        let (port, _) = serve(echo(), acceptor(&authority, "own", false)).await;
        let proxy = Proxy::new(settings(&authority, "localhost", port)).unwrap();
        let kept = Arc::<Kept>::default();
        let span = Span::of_request(7, 9, None, Arc::clone(&kept) as _);
        let mut request = http::Request::new(Body::empty());
        *request.uri_mut() = "/a?secret=1".parse().unwrap();
        let timing = Timing::begin(Duration::ZERO, Some(span));
        request.extensions_mut().insert(timing);
        let response = proxy.oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        // The span ends with the body.
        drop(response);
        let spans = kept.0.lock();
        let [span] = &spans[..] else {
            panic!("{spans:?}");
        };
        let url = SpanValue::from(format!("https://localhost:{port}/a"));
        for attribute in [("url.full", url), ("server.port", port.into())] {
            assert!(span.attributes.contains(&attribute), "{span:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn connections_are_kept_and_used_again() {
    within(async {
        let authority = Authority::new();
        authority.issue("own", "localhost");
        let fine = Router::new().fallback(async || "fine");
        let (port, seen) = serve(fine, acceptor(&authority, "own", false)).await;
        let rig = Rig::with(settings(&authority, "localhost", port));
        let mut stream = rig.connect().await;
        for _ in 0..20 {
            let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
            stream.write_all(request).await.unwrap();
            read_to(&mut stream, "\r\n\r\nfine").await;
        }
        assert_eq!(seen.connections.load(Ordering::Relaxed), 1);
        drop(stream);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_nobody_vouches_for_gets_nothing() {
    log::keep();
    within(async {
        let (authority, other) = (Authority::new(), Authority::new());
        let past = SystemTime::now() - Duration::from_hours(1);
        authority.issue("own", "localhost");
        authority.issue_until("old", "localhost", Some(past));
        for (file, host, trusted, reason) in [
            // Both authorities have the same name.
            ("own", "localhost", &other, "BadSignature"),
            ("own", "127.0.0.1", &authority, "not valid for name"),
            ("old", "localhost", &authority, "expired"),
        ] {
            let (port, seen) = serve(echo(), acceptor(&authority, file, false)).await;
            let rig = Rig::with(settings(trusted, host, port));
            assert_eq!(status_of(&rig.get("/", "").await), 502, "{reason}");
            assert_eq!(rig.upstream(0).failures.connect, 1, "{reason}");
            assert_eq!(seen.handshakes.load(Ordering::Relaxed), 0, "{reason}");
            let told = log::lines(&format!("https://{host}:{port}"), "");
            let says = |line: &String| line.contains(reason);
            assert!(told.iter().any(says), "{reason}: {told:?}");
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_name_may_be_another_than_that_of_the_address() {
    within(async {
        let authority = Authority::new();
        authority.issue("own", "api.internal");
        authority.issue("address", "127.0.0.1");
        let name = Some("api.internal".to_owned());
        for (file, tls_server_name) in [("own", name), ("address", None)] {
            let (port, _) = serve(echo(), acceptor(&authority, file, false)).await;
            let rig = Rig::with(Settings {
                tls_server_name,
                ..settings(&authority, "127.0.0.1", port)
            });
            let response = rig.get("/", "").await;
            assert_eq!(status_of(&response), 200, "{file}");
            assert!(response.contains("host: example.org\n"), "{response}");
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_upstream_may_ask_for_a_certificate() {
    within(async {
        let authority = Authority::new();
        authority.issue("own", "localhost");
        authority.issue("proxy", "the proxy");
        let (port, _) = serve(echo(), acceptor(&authority, "own", true)).await;
        let without = settings(&authority, "localhost", port);
        let with = Settings {
            tls_certificate: Some(authority.path("proxy.pem")),
            tls_key: Some(authority.path("proxy.key")),
            ..without.clone()
        };
        for (settings, status) in [(with, 200), (without, 502)] {
            let rig = Rig::with(settings);
            assert_eq!(status_of(&rig.get("/", "").await), status);
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn websockets_pass() {
    within(async {
        let authority = Authority::new();
        authority.issue("own", "localhost");
        let (port, _) = serve(chatting(), acceptor(&authority, "own", false)).await;
        let rig = Rig::with(settings(&authority, "localhost", port));
        let url = format!("ws://{}/chat", rig.address);
        let stream = rig.connect().await;
        let opened = tokio_tungstenite::client_async(url, stream).await;
        let (mut socket, _) = opened.unwrap();
        for message in ["hello".to_owned(), "x".repeat(300_000)] {
            socket.send(Message::text(message.clone())).await.unwrap();
            let echoed = socket.next().await.unwrap().unwrap();
            assert_eq!(echoed, Message::text(message));
        }
        socket.close(None).await.unwrap();
        while let Some(Ok(_)) = socket.next().await {}
        drop(socket);
        until(|| rig.upstream(0).in_flight == 0).await;
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_handshake_without_end_is_given_up() {
    within(async {
        let authority = Authority::new();
        let silent = Scripted::start(|_, mut stream| async move {
            let _ended = stream.read_to_end(&mut Vec::new()).await;
        })
        .await;
        // The time for the response begins with the connection, however short it is.
        for response_head_timeout in [Duration::from_millis(1), Duration::from_mins(10)] {
            let rig = Rig::with(Settings {
                connect_timeout: Duration::from_millis(50),
                response_head_timeout,
                ..settings(&authority, "127.0.0.1", silent.address.port())
            });
            assert_eq!(status_of(&rig.get("/", "").await), 504);
            let failures = rig.upstream(0).failures;
            assert_eq!((failures.connect_timeout, failures.total()), (1, 1));
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_that_ends_without_the_end_of_tls_is_cut_off() {
    within(async {
        let authority = Authority::new();
        authority.issue("own", "localhost");
        for (is_whole, end) in [(true, "0\r\n\r\n"), (false, "half\r\n")] {
            let acceptor = acceptor(&authority, "own", false);
            let upstream = Scripted::start(move |_, stream| {
                let acceptor = acceptor.clone();
                async move {
                    let mut stream = acceptor.accept(stream).await.unwrap();
                    read_to(&mut stream, "\r\n\r\n").await;
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf")
                        .await
                        .unwrap();
                    stream.flush().await.unwrap();
                    if is_whole {
                        stream.shutdown().await.unwrap();
                    }
                }
            })
            .await;
            let rig = Rig::with(settings(&authority, "localhost", upstream.address.port()));
            let response = rig.get("/", "").await;
            assert!(body_of(&response).ends_with(end), "{response}");
            assert_eq!(rig.upstream(0).failures.response_body, u64::from(!is_whole));
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn another_upstream_is_asked_in_place_of_one_that_nobody_vouches_for() {
    within(async {
        let (authority, other) = (Authority::new(), Authority::new());
        for authority in [&authority, &other] {
            authority.issue("own", "localhost");
        }
        let (bad, seen) = serve(echo(), acceptor(&other, "own", false)).await;
        let (good, _) = serve(echo(), acceptor(&authority, "own", false)).await;
        let mut settings = settings(&authority, "localhost", bad);
        settings
            .to
            .push(format!("https://localhost:{good}").parse().unwrap());
        let rig = Rig::with(settings);
        for _ in 0..4 {
            let response = rig.exchange(send("POST", "/", "body")).await;
            assert_eq!(status_of(&response), 200);
        }
        assert_eq!(seen.handshakes.load(Ordering::Relaxed), 0);
        assert!(rig.upstream(0).failures.connect > 0);
        rig.end().await;
    })
    .await;
}

#[test]
fn what_cannot_be_used_is_named() {
    let authority = Authority::new();
    authority.issue("own", "a");
    authority.issue("other", "a");
    let of = |text: &str| {
        let text = text.replace('@', &authority.text(""));
        let settings: Settings = toml::from_str(&text).unwrap();
        Proxy::new(settings).unwrap_err().to_string()
    };
    let secured = "to = ['https://a']\n";
    for (text, expected) in [
        ("tls_ca = '@none.pem'", "tls_ca is not usable: cannot read "),
        ("tls_ca = '@own.key'", "own.key:1: there is no certificate"),
        (
            "tls_ca = '@root.pem'\ntls_key = '@own.key'",
            "tls_key is set without tls_certificate",
        ),
        (
            "tls_ca = '@root.pem'\ntls_certificate = '@own.pem'",
            "tls_certificate is set without tls_key",
        ),
        (
            "tls_ca = '@root.pem'\ntls_certificate = '@own.pem'\ntls_key = '@other.key'",
            "other.key:1: the key is not that of the certificate",
        ),
        (
            "tls_ca = '@root.pem'\ntls_certificate = '@own.key'\ntls_key = '@other.key'",
            "tls_certificate is not usable: ",
        ),
        ("tls_server_name = 'a b'", "tls_server_name is `a b`, which"),
    ] {
        let error = of(&format!("{secured}{text}"));
        assert!(error.contains(expected), "{text}: {error}");
    }
    let error = of("to = ['http://a']\ntls_ca = '@root.pem'");
    assert!(error.contains("tls_ca is set, but no upstream"), "{error}");
}
