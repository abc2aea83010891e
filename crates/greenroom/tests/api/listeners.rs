//! Listeners of every kind: tokio's, tapped, over TLS, and of the application's own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::extract::connect_info::Connected;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::routing::{any, get};
use axum::serve::{Listener, ListenerExt};
use futures_util::{SinkExt, StreamExt};
use greenroom::{IncomingStream, Placement};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::gate::Gate;
use crate::rig::{any_port, exchange, get as fetch, within};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

/// Responds with the thread on which it runs, once it was proven short: on a loop.
fn where_it_runs() -> Router {
    let name = || async { thread::current().name().unwrap_or_default().to_owned() };
    Router::new()
        .route("/", get(name))
        .layer(Placement::inline())
}

/// Serves while `test` runs, then drains and awaits the end.
async fn serving<L, A, Kind>(listener: L, app: A, test: impl Future<Output = ()>)
where
    L: Listener,
    A: greenroom::IntoApp<Kind, L> + Send,
    Kind: 'static,
{
    let (end, ended) = oneshot::channel::<()>();
    let serve = greenroom::serve(listener, app).with_graceful_shutdown(async { drop(ended.await) });
    let served = tokio::spawn(async { serve.await });
    test.await;
    drop(end);
    served.await.unwrap().unwrap();
}

async fn all_of(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, request: &[u8]) -> String {
    stream.write_all(request).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

#[derive(Clone)]
struct Credentials {
    user: u32,
    process: Option<i32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Credentials {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        assert!(stream.remote_addr().is_unnamed());
        let peer = stream.io().peer_cred().unwrap();
        Self {
            user: peer.uid(),
            process: peer.pid(),
        }
    }
}

#[tokio::test]
async fn a_unix_socket_and_who_is_at_its_other_end() {
    within(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app.sock");
        let app = Router::new().route("/", get(|| async { "hello" }));
        serving(UnixListener::bind(&path).unwrap(), app, async {
            let stream = UnixStream::connect(&path).await.unwrap();
            assert!(all_of(stream, GET).await.ends_with("\r\n\r\nhello"));
        })
        .await;
        assert!(path.exists(), "the file is its maker's to remove");

        let path = directory.path().join("told.sock");
        let told = |ConnectInfo(peer): ConnectInfo<Credentials>| async move {
            format!("{} {:?}", peer.user, peer.process)
        };
        let app = Router::new().route("/", get(told));
        let app = app.into_make_service_with_connect_info::<Credentials>();
        serving(UnixListener::bind(&path).unwrap(), app, async {
            let stream = UnixStream::connect(&path).await.unwrap();
            let own = stream.peer_cred().unwrap();
            let said = format!("{} {:?}", own.uid(), Some(std::process::id()));
            let response = all_of(stream, GET).await;
            assert!(response.ends_with(&said), "{response} {said}");
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_listener_whose_streams_are_tapped() {
    within(async {
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let tapped = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tapped);
        let listener = listener.tap_io(move |tcp| {
            tcp.set_nodelay(true).unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let app = where_it_runs().into_make_service_with_connect_info::<SocketAddr>();
        serving(listener, app, async {
            let mut ran = String::new();
            for _ in 0..4 {
                ran += &exchange(address, GET).await;
            }
            assert!(ran.contains("loop-"), "{ran}");
        })
        .await;
        assert_eq!(tapped.load(Ordering::Relaxed), 4);
        assert!(TcpStream::connect(address).await.is_err(), "it was closed");
    })
    .await;
}

#[derive(Clone)]
struct Port(u16);

impl Connected<IncomingStream<'_, TcpListener>> for Port {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        let peer = stream.io().peer_addr().unwrap();
        assert_eq!(peer, *stream.remote_addr());
        Self(peer.port())
    }
}

/// Its routes are told apart as those of any router.
#[tokio::test]
async fn a_type_of_the_applications_own_sees_the_stream() {
    within(async {
        let gate = Gate::default();
        let held = gate.clone();
        let port = |ConnectInfo(Port(port)): ConnectInfo<Port>| async move { port.to_string() };
        let app = Router::new()
            .route("/stream/port", get(port))
            .route("/stream/block", get(move || async move { held.block() }));
        let app = app.into_make_service_with_connect_info::<Port>();
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        serving(listener, app, async {
            let blocked = gate.fill(&format!("http://{address}/stream/block")).await;
            let mut stream = TcpStream::connect(address).await.unwrap();
            let port = stream.local_addr().unwrap().port().to_string();
            let request = "GET /stream/port HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
            let response = all_of(&mut stream, request.as_bytes()).await;
            assert!(response.ends_with(&port), "{response} {port}");
            gate.open().await;
            blocked.all_served().await;
        })
        .await;
    })
    .await;
}

/// A look at one connection that panics is the end of that connection.
#[tokio::test]
async fn a_look_that_panics_ends_its_connection_only() {
    #[derive(Clone)]
    struct Once;
    static LOOKED_AT: AtomicUsize = AtomicUsize::new(0);
    impl Connected<IncomingStream<'_, TcpListener>> for Once {
        fn connect_info(_: IncomingStream<'_, TcpListener>) -> Self {
            assert!(
                LOOKED_AT.fetch_add(1, Ordering::Relaxed) > 0,
                "at the first"
            );
            Self
        }
    }
    within(async {
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = where_it_runs().into_make_service_with_connect_info::<Once>();
        serving(listener, app, async {
            let mut first = TcpStream::connect(address).await.unwrap();
            assert_eq!(first.read(&mut [0; 9]).await.unwrap_or(0), 0);
            let url = format!("http://{address}/");
            assert_eq!(fetch(url).await.0, 200);
        })
        .await;
    })
    .await;
}

/// A listener in memory, whose addresses are numbers.
struct InMemory(mpsc::UnboundedReceiver<DuplexStream>, usize);

impl Listener for InMemory {
    type Io = DuplexStream;
    type Addr = usize;

    async fn accept(&mut self) -> (DuplexStream, usize) {
        let Some(stream) = self.0.recv().await else {
            return std::future::pending().await;
        };
        self.1 += 1;
        (stream, self.1)
    }

    fn local_addr(&self) -> io::Result<usize> {
        Ok(0)
    }
}

#[derive(Clone)]
struct Number(usize);

impl Connected<IncomingStream<'_, InMemory>> for Number {
    fn connect_info(stream: IncomingStream<'_, InMemory>) -> Self {
        Self(*stream.remote_addr())
    }
}

#[tokio::test]
async fn a_listener_of_the_applications_own() {
    within(async {
        let (give, given) = mpsc::unbounded_channel();
        let number =
            |ConnectInfo(Number(number)): ConnectInfo<Number>| async move { number.to_string() };
        let app = Router::new().route("/", get(number));
        let app = app.into_make_service_with_connect_info::<Number>();
        serving(InMemory(given, 0), app, async {
            for number in 1..=4 {
                let (client, server) = duplex(1_024);
                give.send(server).unwrap();
                let response = all_of(client, GET).await;
                assert!(
                    response.ends_with(&format!("\r\n\r\n{number}")),
                    "{response}"
                );
            }
        })
        .await;
        assert!(give.is_closed());
    })
    .await;
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_websocket_over_a_stream_of_any_type() {
    within(async {
        let (give, given) = mpsc::unbounded_channel();
        let upgrade = |upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) };
        let app = Router::new().route("/", any(upgrade));
        serving(InMemory(given, 0), app, async {
            let (client, server) = duplex(1_024);
            give.send(server).unwrap();
            let opened = tokio_tungstenite::client_async("ws://test/", client).await;
            let (mut socket, _) = opened.unwrap();
            let message = tokio_tungstenite::tungstenite::Message::text("hello".repeat(1_000));
            socket.send(message.clone()).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), message);
            socket.close(None).await.unwrap();
        })
        .await;
    })
    .await;
}

/// As in axum's example `low-level-rustls`: the handshake is done where connections are accepted.
struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A server's and a client's settings for `localhost`.
fn tls() -> (TlsAcceptor, TlsConnector) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut authorities = RootCertStore::empty();
    authorities.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(authorities)
        .with_no_client_auth();
    (Arc::new(server).into(), Arc::new(client).into())
}

#[tokio::test]
async fn a_listener_over_tls() {
    within(async {
        let (acceptor, connector) = tls();
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let body = "0123456789".repeat(100_000);
        let sent = body.clone();
        let peer = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() };
        let app = Router::new()
            .route("/", get(|| async { sent }))
            .route("/peer", get(peer))
            .into_make_service_with_connect_info::<SocketAddr>();
        serving(Tls { listener, acceptor }, app, async {
            let connect = async || {
                let stream = TcpStream::connect(address).await.unwrap();
                let own = stream.local_addr().unwrap();
                let name = ServerName::try_from("localhost").unwrap();
                (connector.connect(name, stream).await.unwrap(), own)
            };
            let (stream, _) = connect().await;
            // rustls gives an error at an end without `close_notify`.
            let response = all_of(stream, GET).await;
            let (_, received) = response.split_once("\r\n\r\n").unwrap();
            assert_eq!(received.len(), body.len());
            assert_eq!(received, body);
            let (stream, own) = connect().await;
            let request = b"GET /peer HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
            let response = all_of(stream, request).await;
            assert!(response.ends_with(&own.to_string()), "{response}");
        })
        .await;
    })
    .await;
}
