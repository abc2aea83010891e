//! A proxy behind a real server, and a client that sends and reads bytes.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use greenroom_proxy::{Proxy, ProxyStatus, Settings, UpstreamAddress, UpstreamStatus};
use greenroom_server::{Address, Error, Handle, RequestBody, Server, ServerBuilder, SharedService};
use greenroom_server::{DrainReport, Limits};
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

/// Fails a test that hangs.
pub(crate) async fn within<F: Future>(test: F) -> F::Output {
    let limit = Duration::from_mins(2);
    timeout(limit, test).await.expect("the test hangs")
}

/// Waits until it holds.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn upstream(address: SocketAddr) -> UpstreamAddress {
    format!("http://{address}").parse().unwrap()
}

/// Returns the settings of a proxy before these upstreams, with time for a slow machine.
pub(crate) fn to<const N: usize>(upstreams: [SocketAddr; N]) -> Settings {
    let long = Duration::from_mins(10);
    Settings {
        connect_timeout: long,
        response_head_timeout: long,
        idle_timeout: long,
        connection_age_max: long,
        ..Settings::new(upstreams.map(upstream))
    }
}

/// Returns an address that nobody listens on.
pub(crate) fn nobody() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A server of two loops on a free port, with a proxy for all paths.
pub(crate) struct Rig {
    pub(crate) address: SocketAddr,
    pub(crate) proxy: Proxy,
    handle: Handle,
    serving: JoinHandle<Result<DrainReport, Error>>,
}

impl Rig {
    pub(crate) fn before<const N: usize>(upstreams: [SocketAddr; N]) -> Self {
        Self::with(to(upstreams))
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::behind(Server::builder(), settings)
    }

    pub(crate) fn behind(server: ServerBuilder, settings: Settings) -> Self {
        Self::routed(server, settings, |proxy| {
            Router::new().fallback_service(proxy)
        })
    }

    pub(crate) fn routed(
        server: ServerBuilder,
        settings: Settings,
        route: impl FnOnce(Proxy) -> Router,
    ) -> Self {
        let proxy = Proxy::new(settings).expect("the settings are allowed");
        let router = route(proxy.clone());
        let adapted = |request: Request<RequestBody>| request.map(Body::new);
        let loops = 2.try_into().unwrap();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let limits = Limits {
            body_bytes_max: 64 * 1_024 * 1_024,
            // A slow machine sheds nothing.
            loop_lag_max: Duration::from_mins(1),
            ..Limits::default()
        };
        let server = server.limits(limits).loops(loops).listen(any_port);
        let server = server.bind().expect("there is a free port");
        let Address::Tcp(address) = server.local_addresses()[0] else {
            panic!("a TCP address was named")
        };
        let app = SharedService(router.map_request(adapted));
        Self {
            address,
            proxy,
            handle: server.handle(),
            serving: tokio::spawn(server.serve(app)),
        }
    }

    pub(crate) fn status(&self) -> ProxyStatus {
        self.proxy.status()
    }

    pub(crate) fn upstream(&self, index: usize) -> UpstreamStatus {
        self.status().upstreams[index].clone()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes and reads up to the end of the connection.
    pub(crate) async fn exchange(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        let (mut reading, mut writing) = stream.split();
        let mut read = Vec::new();
        // The server may respond, and close, before it has taken all; what came before a reset is
        // in the buffer.
        let _ended = tokio::join!(
            writing.write_all(bytes.as_ref()),
            reading.read_to_end(&mut read)
        );
        String::from_utf8_lossy(&read).into_owned()
    }

    /// Asks for a path, with these header fields.
    pub(crate) async fn get(&self, path: &str, fields: &str) -> String {
        self.exchange(get(path, fields)).await
    }

    /// Drains the server.
    pub(crate) async fn end(self) -> DrainReport {
        self.handle.drain();
        let report = self.serving.await.expect("serving does not panic");
        report.expect("serving ends in order")
    }
}

/// Returns a request behind which the connection ends.
pub(crate) fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n{fields}\r\n")
}

/// Returns a request with a body.
pub(crate) fn send(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Reads up to the end of the connection, which may be a reset.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // What came before a reset is in the buffer.
    let _ended = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads up to these bytes.
pub(crate) async fn read_to<S: AsyncReadExt + Unpin>(stream: &mut S, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        match stream.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(error) => panic!("{error} behind {}", String::from_utf8_lossy(&bytes)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn status_of(response: &str) -> u16 {
    let status = response
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no response: {response}"))
}

pub(crate) fn body_of(response: &str) -> &str {
    response.split_once("\r\n\r\n").unwrap_or_default().1
}
