//! Connections of proxies: the PROXY protocol ahead of HTTP, and what their headers tell.

use std::path::{Path, PathBuf};
use std::time::Duration;

use greenroom_server::{
    Address, App, BoxError, ConnectionInfo, DrainReport, Error, ForwardedFor, Handle,
    PROXY_HEADER_BYTES_MAX, RequestBody, Server, ServerBuilder,
};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, sleep};
use tower::util::BoxCloneService;
use tower::{ServiceExt, service_fn};

use crate::client::{Client, get};
use crate::listening::{ANY_PORT, tcp_address};
use crate::panics::Log;
use crate::rig::{Body, Reply, Rig, app, assert_elapsed, local, settle, text, within};

const SECOND: Duration = Duration::from_secs(1);

/// From 203.0.113.7, port 4711, to 192.0.2.1, port 443.
const V1: &[u8] = b"PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x07\xc0\0\x02\x01\x12\x67\x01\xbb";
/// A health check of the proxy's own.
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
const UNKNOWN: &[u8] = b"PROXY UNKNOWN\r\n";

const TOLD: &str = "203.0.113.7:4711 192.0.2.1:443";
const OWN: &str = "nobody a Unix socket";

/// Responds with the addresses of the connection.
#[derive(Clone)]
struct Addresses;

impl App for Addresses {
    type Body = Body;
    type Service = BoxCloneService<Request<RequestBody>, Response<Body>, BoxError>;

    fn connect(&self, info: &ConnectionInfo) -> Self::Service {
        let peer = info.peer.map(|peer| peer.to_string());
        let local = match &info.local {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(_) => "a Unix socket".to_owned(),
        };
        let said = format!("{} {local}", peer.as_deref().unwrap_or("nobody"));
        service_fn(move |_| {
            let said = said.clone();
            async { Reply::Ok(text(said)) }
        })
        .boxed_clone()
    }
}

/// A server on this thread, on a Unix socket for proxies.
struct Proxied {
    handle: Handle,
    serving: JoinHandle<Result<DrainReport, Error>>,
    path: PathBuf,
    _directory: TempDir,
}

impl Proxied {
    fn start() -> Self {
        Self::with(|builder| builder)
    }

    fn with(set: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        Log::capture();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.sock");
        let builder = Server::builder().loops(1.try_into().unwrap());
        let builder = builder.listen_proxied(Address::Unix(path.clone()));
        let server = set(builder).bind().unwrap();
        Self {
            handle: server.handle(),
            serving: spawn_local(server.serve_local(Addresses)),
            path,
            _directory: directory,
        }
    }

    async fn connect(&self) -> Client {
        Client::unix(&self.path).await
    }

    /// Returns the response to a connection that begins with these bytes.
    async fn told(&self, header: &[u8]) -> String {
        let mut client = self.connect().await;
        client.send([header, get("/").as_bytes()].concat()).await;
        client.response().await.text().to_owned()
    }

    /// Asserts that a connection that begins with these bytes is closed without a response.
    async fn assert_closes(&self, bytes: &[u8]) {
        let mut client = self.connect().await;
        let _taken = client.try_send(bytes).await;
        assert!(client.is_closed().await, "{bytes:?}");
    }

    async fn end(self) {
        self.handle.drain();
        assert_eq!(self.serving.await.unwrap().unwrap().aborted, []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_of_whom_its_header_announces() {
    local(async {
        let server = Proxied::start();
        let v6: &[u8] = b"PROXY TCP6 2001:db8::7 ::1 4711 443\r\n";
        let with_tlv = [&V2[..15], b"\x11", &V2[16..], b"\x04\0\x02\0\0"].concat();
        for (header, expected) in [
            (V1, TOLD),
            (V2, TOLD),
            (&with_tlv[..], TOLD),
            (v6, "[2001:db8::7]:4711 [::1]:443"),
            (LOCAL, OWN),
            (UNKNOWN, OWN),
        ] {
            assert_eq!(server.told(header).await, expected, "{header:?}");
        }
        server.end().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_header_may_come_in_parts_and_requests_follow_as_ever() {
    local(async {
        let server = Proxied::start();
        for header in [V1, V2] {
            let mut client = server.connect().await;
            for byte in header.chunks(1) {
                client.send(byte).await;
                settle().await;
            }
            for _ in 0..2 {
                assert_eq!(client.get("/").await.text(), TOLD);
            }
        }
        server.end().await;
    })
    .await;
}

#[tokio::test]
async fn tcp_is_announced_too_beside_addresses_that_are_not() {
    within(async {
        let builder = Server::builder().loops(2.try_into().unwrap());
        let server = builder.listen_proxied(ANY_PORT).listen(ANY_PORT).bind();
        let server = server.unwrap();
        let proxied = tcp_address(&server);
        let Address::Tcp(plain) = server.local_addresses()[1] else {
            panic!("a TCP address was named")
        };
        let handle = server.handle();
        let serving = tokio::spawn(server.serve(Addresses));
        for header in [V1, V2] {
            let mut client = Client::tcp(proxied).await;
            client.send(header).await;
            assert_eq!(client.get("/").await.text(), TOLD);
        }
        let mut client = Client::tcp(proxied).await;
        client.send(LOCAL).await;
        let own = client.get("/").await.text().to_owned();
        assert!(own.starts_with("127.0.0.1:"), "{own}");
        assert!(own.ends_with(&proxied.to_string()), "{own}");
        let mut client = Client::tcp(plain).await;
        let own = client.get("/").await.text().to_owned();
        assert!(own.ends_with(&plain.to_string()), "{own}");
        handle.drain();
        serving.await.unwrap().unwrap();
    })
    .await;
}

async fn told_by_http2(path: &Path, header: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(header).await.unwrap();
    let io = TokioIo::new(stream);
    let (mut send, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = spawn_local(connection);
    let request = Request::get("http://test/").body(Empty::<Bytes>::new());
    let response = send.send_request(request.unwrap()).await.unwrap();
    let told = response.into_body().collect().await.unwrap().to_bytes();
    connection.abort();
    String::from_utf8(told.to_vec()).unwrap()
}

#[tokio::test]
async fn http_2_is_announced_too() {
    within(async {
        let server = Proxied::start();
        for (header, expected) in [(V1, TOLD), (V2, TOLD), (LOCAL, OWN)] {
            assert_eq!(told_by_http2(&server.path, header).await, expected);
        }
        server.handle.abort();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_its_header_is_closed_and_that_is_said() {
    local(async {
        let server = Proxied::start();
        server.assert_closes(get("/").as_bytes()).await;
        Log::assert_line(&["WARN", "does not begin with a header of the PROXY protocol"]);
        let endless = [b"PROXY ", &[b'a'; 200][..]].concat();
        let length = u16::try_from(PROXY_HEADER_BYTES_MAX).unwrap().to_be_bytes();
        let long = [&V2[..14], &length].concat();
        for bytes in [
            &b"P\r\n"[..],
            &endless,
            &long,
            b"PROXY TCP4 localhost ::1 1 2\r\n",
            b"\x16\x03\x01\x02\0",
        ] {
            server.assert_closes(bytes).await;
        }
        // Whoever only looks whether somebody listens.
        server.connect().await.end().await;
        assert_eq!(server.told(V2).await, TOLD);
        server.end().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_header_that_does_not_come_in_10_s_is_waited_for_no_longer() {
    local(async {
        let server = Proxied::start();
        for begun in [&b""[..], &V1[..10], &V2[..20]] {
            let mut client = server.connect().await;
            client.send(begun).await;
            let since = Instant::now();
            assert!(client.is_closed().await);
            assert_elapsed(since, 10 * SECOND);
        }
        server.end().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_a_header_as_for_a_request() {
    local(async {
        let server = Proxied::start();
        let mut silent = server.connect().await;
        let mut begun = server.connect().await;
        begun.send(&V1[..10]).await;
        let mut slow = server.connect().await;
        settle().await;
        // It is accepted when the server drains already.
        let mut queued = server.connect().await;
        let since = Instant::now();
        server.handle.drain();
        sleep(Duration::from_millis(50)).await;
        for client in [&mut slow, &mut queued] {
            client.send(V1).await;
            let response = client.get("/").await;
            assert_eq!((response.text(), response.closes()), (TOLD, true));
        }
        for client in [&mut silent, &mut begun] {
            assert!(client.is_closed().await);
        }
        assert_elapsed(since, SECOND / 2);
        drop((slow, queued));
        server.end().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_drain_waits_for_no_header() {
    local(async {
        let server = Proxied::start();
        let mut client = server.connect().await;
        client.send(&V1[..10]).await;
        settle().await;
        let since = Instant::now();
        server.handle.abort();
        assert!(client.is_closed().await);
        assert_elapsed(since, Duration::ZERO);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn only_trusted_proxies_announce_if_any_are_trusted() {
    local(async {
        let trusting = |proxies: &'static str| {
            Proxied::with(|builder| builder.trusted_proxies(proxies.parse().unwrap()))
        };
        let server = trusting("10.0.0.0/8");
        server.assert_closes(V1).await;
        Log::assert_line(&["WARN", "it comes from no trusted proxy"]);
        server.end().await;
        let server = trusting("unix");
        assert_eq!(server.told(V1).await, TOLD);
        server.end().await;
    })
    .await;
}

/// Says whom a request is for.
async fn client(request: Request<RequestBody>) -> Reply {
    let client = request.extensions().get::<ForwardedFor>();
    Ok(text(
        client.map_or("nobody".to_owned(), ToString::to_string),
    ))
}

fn asked_for(client: &str) -> String {
    format!("GET /path HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: {client}\r\n\r\n")
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_trusted_proxy_says_for_whom_it_is_and_so_does_the_log() {
    local(async {
        Log::capture();
        for (proxies, client_told) in [("", "nobody"), ("unix", "203.0.113.9")] {
            let proxies = proxies.parse().unwrap();
            let server = Rig::with(app(client), |builder| {
                builder.access_log(true).trusted_proxies(proxies)
            });
            let mut client = server.connect().await;
            client.send(asked_for("203.0.113.9")).await;
            assert_eq!(client.response().await.text(), client_told);
            server.handle.drain();
            server.ended().await;
        }
        Log::assert_line(&["greenroom::access", "client=203.0.113.9", "/path"]);
    })
    .await;
}

/// A network's edge announces itself, and names its client in a header.
#[tokio::test(start_paused = true)]
async fn the_walk_begins_with_who_is_announced() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.sock");
        let server = Server::builder()
            .loops(1.try_into().unwrap())
            .listen_proxied(Address::Unix(path.clone()))
            .trusted_proxies("unix, 203.0.113.7".parse().unwrap())
            .bind()
            .unwrap();
        let handle = server.handle();
        let serving = spawn_local(server.serve_local(app(client)));
        for (header, told) in [
            (V1, "198.51.100.1"),
            (
                &b"PROXY TCP4 203.0.113.8 192.0.2.1 4711 443\r\n"[..],
                "nobody",
            ),
            (LOCAL, "198.51.100.1"),
        ] {
            let mut client = Client::unix(&path).await;
            client.send(header).await;
            client.send(asked_for("198.51.100.1")).await;
            assert_eq!(client.response().await.text(), told, "{header:?}");
        }
        handle.drain();
        serving.await.unwrap().unwrap();
    })
    .await;
}
