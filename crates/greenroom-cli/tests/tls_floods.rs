//! Floods of what is no handshake, or half of one, beside clients that are served all the while.

mod authority;
mod outside;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use authority::Authority;
use outside::http::{self, HELLO};
use outside::probe::Probe;
use outside::server::Server;
use outside::wait;
use rustix::net::sockopt;
use rustix::process::Signal;
use tokio::net::TcpSocket;
use tokio::sync::Barrier;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const NAME: &str = "server.test";
const PATIENCE: Duration = Duration::from_mins(2);
/// Time that a handshake may take in the floods. None of those that are asserted comes with them.
const HANDSHAKE_TIMEOUT: &str = "3s";
const THREADS: usize = 8;
/// Connections of a kind in a flood, all of them at once.
const CONNECTS: usize = 2_000;
const WARM_UP_CONNECTS: usize = 400;
/// The growth of the server after the warm-up: less than what 2,000 connections would leave if each
/// left a buffer of a record.
const GROWTH_MAX_KIB: u64 = 16 * 1_024;

/// The ways not to shake hands.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Sends nothing and stays.
    Silent,
    /// Sends its first message byte by byte, not to its end, and stays.
    ByteByByte,
    /// Sends its first message, reads nothing and stays.
    Unread,
    /// Reads the server's response and stays.
    Half,
    /// Sends what is no TLS.
    Garbage,
    /// Resets the connection behind its first message.
    Reset,
    /// Shakes hands, and closes.
    Whole,
}

const KINDS: [Kind; 7] = [
    Kind::Silent,
    Kind::ByteByByte,
    Kind::Unread,
    Kind::Half,
    Kind::Garbage,
    Kind::Reset,
    Kind::Whole,
];

fn config(authority: &Authority) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(authority.path("root.pem")).expect("it is there");
    roots.add(root).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn session(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from(NAME).expect("a name");
    ClientConnection::new(Arc::clone(config), name).expect("a session")
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// A client's connection in a flood, if it stays. What the server does with it is its own affair:
/// it may refuse any of them.
fn misbehave(kind: Kind, address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<TcpStream> {
    let mut stream = connect(address)?;
    let mut hello = Vec::new();
    session(config).write_tls(&mut hello)?;
    match kind {
        Kind::Silent => {}
        Kind::ByteByByte => {
            for byte in &hello[..40] {
                stream.write_all(&[*byte])?;
            }
        }
        Kind::Unread => stream.write_all(&hello)?,
        Kind::Half => {
            stream.write_all(&hello)?;
            stream.read_exact(&mut [0; 5])?;
        }
        Kind::Garbage => stream.write_all(&[0x80; 300])?,
        Kind::Reset => {
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
            stream.write_all(&hello)?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Kind::Whole => {
            let mut session = session(config);
            while session.is_handshaking() {
                session.complete_io(&mut stream)?;
            }
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    }
    Ok(stream)
}

/// Makes so many connections of a kind, and waits until the server has ended those that stay.
fn flood(kind: Kind, connects: usize, address: SocketAddr, config: &Arc<ClientConfig>) {
    let one = |config: Arc<ClientConfig>| {
        let connect = |_| misbehave(kind, address, &config).ok();
        let kept: Vec<TcpStream> = (0..connects / THREADS).filter_map(connect).collect();
        for mut stream in kept {
            match stream.read_to_end(&mut Vec::new()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("{kind:?}: the server keeps a connection without a handshake")
                }
                // It may be a reset.
                _ => {}
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let config = Arc::clone(config);
            scope.spawn(move || one(config));
        }
    });
}

/// A client that asks on one connection over TLS, again and again.
struct Settled {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Settled {
    fn start(address: SocketAddr, config: &Arc<ClientConfig>) -> Self {
        let socket = connect(address).expect("the server accepts");
        let mut stream = StreamOwned::new(session(config), socket);
        ask(&mut stream);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut count = 0;
            while !stopped.load(Ordering::Relaxed) {
                ask(&mut stream);
                count += 1;
                thread::sleep(Duration::from_millis(20));
            }
            count
        });
        Self { stop, thread }
    }

    /// Returns how many responses there were; none was lacking.
    fn finish(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("each request gets its response")
    }
}

fn ask(stream: &mut (impl Read + Write)) {
    let request = b"GET /hello HTTP/1.1\r\nHost: server.test\r\n\r\n";
    stream.write_all(request).expect("the connection is open");
    let mut response = Vec::new();
    while !response.ends_with(HELLO.as_bytes()) {
        let mut part = [0; 1_024];
        let length = stream.read(&mut part).expect("there is a response");
        assert!(length > 0, "the connection ended");
        response.extend_from_slice(&part[..length]);
    }
}

/// A server with addresses with and without TLS, and its status.
fn start(authority: &Authority, flags: &[&str]) -> Server {
    authority.issue("server", NAME);
    let mut all = authority.flags("server");
    all.extend(
        [
            "--listen-plain",
            "127.0.0.1:0",
            "--status-listen",
            "127.0.0.1:0",
        ]
        .map(str::to_owned),
    );
    all.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    Server::with_flags_listening_on(&all, 2)
}

#[test]
fn floods_without_handshakes_leave_nothing_behind() {
    let authority = Authority::new();
    let mut server = start(&authority, &["--handshake-timeout", HANDSHAKE_TIMEOUT]);
    let config = config(&authority);
    let (tls, plain) = (server.address(), server.address_of(1));
    for kind in KINDS {
        flood(kind, WARM_UP_CONNECTS, tls, &config);
    }
    let baseline = server.descriptors_at_rest_beside(plain);
    let warm_kib = server.resident_kib();
    let settled = Settled::start(tls, &config);
    let probe = Probe::start(plain);
    for kind in KINDS {
        flood(kind, CONNECTS, tls, &config);
    }
    let tally = probe.finish();
    assert!(tally.failures.is_empty() && tally.served > 0, "{tally:?}");
    assert!(settled.finish() > 0);
    server.await_descriptors(baseline);
    let grown_kib = server.resident_kib().saturating_sub(warm_kib);
    assert!(
        grown_kib <= GROWTH_MAX_KIB,
        "grown by {grown_kib} KiB from {warm_kib} KiB"
    );
    server.assert_sound();
}

/// The number of handshakes that were declined, by the server's metrics.
fn declined(status: SocketAddr) -> u64 {
    let metrics = http::get(status, "/greenroom/metrics", PATIENCE).expect("they are there");
    let is_of_handshakes = |line: &&str| {
        line.starts_with("greenroom_loop_declined_total{") && line.contains("reason=\"handshakes\"")
    };
    let lines = metrics.body.lines().filter(is_of_handshakes);
    let counts = lines.filter_map(|line| line.split(' ').next_back());
    counts
        .map(|count| count.parse::<u64>().expect("a number"))
        .sum()
}

/// Has first messages come from many threads, many at once.
fn flood_until(
    stop: &Arc<AtomicBool>,
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> Vec<JoinHandle<()>> {
    let mut hello = Vec::new();
    let written = session(config).write_tls(&mut hello);
    written.expect("a first message");
    let flood = |_| {
        let (hello, stop) = (hello.clone(), Arc::clone(stop));
        thread::spawn(move || {
            let greet = |_| {
                let mut stream = connect(address).ok()?;
                stream.write_all(&hello).ok().map(|()| stream)
            };
            while !stop.load(Ordering::Relaxed) {
                drop((0..50).filter_map(greet).collect::<Vec<_>>());
            }
        })
    };
    (0..THREADS).map(flood).collect()
}

#[test]
fn an_address_is_served_beside_one_that_floods() {
    const SERVED: usize = 30;
    let authority = Authority::new();
    let flags = [
        "--handshakes-max",
        "4",
        "--loops",
        "1",
        "--handshake-timeout",
        "60s",
    ];
    let mut server = start(&authority, &flags);
    let config = config(&authority);
    let (tls, status) = (server.address(), server.address_of(2));
    let stop = Arc::new(AtomicBool::new(false));
    let flooding = flood_until(&stop, tls, &config);
    let is_declined = |count: &u64| *count > 0;
    wait::until(
        "declined handshakes",
        PATIENCE,
        || declined(status),
        is_declined,
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (other, connector) = ("127.0.0.2:0", TlsConnector::from(config));
    runtime.block_on(async {
        for number in 0..SERVED {
            let socket = TcpSocket::new_v4().expect("a socket");
            socket
                .bind(other.parse().expect("an address"))
                .expect("an address of this machine");
            let stream = socket.connect(tls).await.expect("the server accepts");
            let name = ServerName::try_from(NAME).expect("a name");
            let shaken = tokio::time::timeout(PATIENCE, connector.connect(name, stream)).await;
            shaken
                .unwrap_or_else(|_| panic!("handshake {number} takes too long"))
                .unwrap_or_else(|error| panic!("handshake {number}: {error}"));
        }
    });
    stop.store(true, Ordering::Relaxed);
    for thread in flooding {
        thread.join().expect("a flood ends");
    }
    server.assert_sound();
}

const DOWNLOADS: usize = 200;
const DOWNLOAD_BYTES: usize = 200_000;

/// Asks for a download and reads it to its end.
async fn download<S>(stream: &mut S)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let request = format!("GET /bytes/{DOWNLOAD_BYTES} HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the connection is open");
    let mut response = Vec::new();
    let mut whole = usize::MAX;
    while response.len() < whole {
        let read = stream
            .read_buf(&mut response)
            .await
            .expect("the connection is open");
        assert!(read > 0, "the connection ended");
        let end = match whole {
            usize::MAX => response.windows(4).position(|some| some == b"\r\n\r\n"),
            _ => None,
        };
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&response[..end]).to_ascii_lowercase();
            let length = format!("content-length: {DOWNLOAD_BYTES}");
            assert!(head.contains(&length), "{head}");
            whole = end + 4 + DOWNLOAD_BYTES;
        }
    }
    assert_eq!(response.len(), whole);
}

#[test]
fn a_reload_loses_no_connection_and_no_download() {
    let authority = Authority::new();
    let mut server = start(&authority, &["--handshake-wait-max", "60s"]);
    let connector = TlsConnector::from(config(&authority));
    // One that resumes nothing, and sees what is shown.
    let new_client = TlsConnector::from(config(&authority));
    let tls = server.address();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        // All are connected, and then all are within a download.
        let (connected, begun) = (
            Arc::new(Barrier::new(DOWNLOADS + 1)),
            Arc::new(Barrier::new(DOWNLOADS + 1)),
        );
        let clients: Vec<_> = (0..DOWNLOADS)
            .map(|_| {
                let connector = connector.clone();
                let (connected, begun) = (Arc::clone(&connected), Arc::clone(&begun));
                tokio::spawn(async move {
                    let stream = tokio::net::TcpStream::connect(tls)
                        .await
                        .expect("it accepts");
                    let name = ServerName::try_from(NAME).expect("a name");
                    let mut stream = connector.connect(name, stream).await.expect("a handshake");
                    download(&mut stream).await;
                    connected.wait().await;
                    begun.wait().await;
                    for _ in 0..3 {
                        download(&mut stream).await;
                    }
                })
            })
            .collect();
        connected.wait().await;
        authority.issue("server", NAME);
        begun.wait().await;
        server.signal(Signal::HUP);
        for client in clients {
            client.await.expect("a client loses nothing");
        }
        server.await_log("read the certificates again");
        let stream = tokio::net::TcpStream::connect(tls)
            .await
            .expect("it accepts");
        let name = ServerName::try_from(NAME).expect("a name");
        let stream = new_client.connect(name, stream).await.expect("a handshake");
        let shown = stream
            .get_ref()
            .1
            .peer_certificates()
            .expect("it shows one")[0]
            .clone();
        let now = fs::read(authority.path("server.pem")).expect("it is there");
        assert!(shown == CertificateDer::from_pem_slice(&now).expect("a certificate"));
    });
    server.assert_sound();
}
