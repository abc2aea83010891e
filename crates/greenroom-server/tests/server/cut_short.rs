//! Bodies whose end is that of the connection, as HTTP/1.0 has them: cut short, they end by a
//! reset.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use greenroom_server::{BoxError, DrainReport, Error, Handle, Limits, RequestBody, Server};
use http::Request;
use http::header::CONTENT_LENGTH;
use http_body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, spawn_local};

use crate::client::get;
use crate::listening::{ANY_PORT, tcp_address};
use crate::panics::Log;
use crate::rig::{Reply, Rig, app, local, streamed, within};

const MILLISECOND: Duration = Duration::from_millis(1);

fn data(length: usize) -> Frame<Bytes> {
    Frame::data(vec![b'd'; length].into())
}

/// A body of five bytes, and of what its path says behind them.
async fn handler(request: Request<RequestBody>) -> Reply {
    let begun = stream::iter([Ok::<_, BoxError>(data(5))]);
    Ok(match request.uri().path() {
        "/fails" => streamed(begun.chain(stream::iter([Err("the disk is gone".into())]))),
        "/panics" => streamed(begun.chain(stream::poll_fn(|_| panic!("in the body")))),
        "/never" => streamed(begun.chain(stream::pending())),
        "/long" => streamed(begun.chain(stream::iter([Ok(data(20_000_000))]))),
        _ => streamed(begun),
    })
}

struct Tcp {
    address: SocketAddr,
    handle: Handle,
    _serving: JoinHandle<Result<DrainReport, Error>>,
}

impl Tcp {
    fn start() -> Self {
        let limits = Limits {
            write_timeout: MILLISECOND,
            drain_deadline: MILLISECOND,
            ..Limits::default()
        };
        let server = Server::builder()
            .listen(ANY_PORT)
            .limits(limits)
            .bind()
            .unwrap();
        Self {
            address: tcp_address(&server),
            handle: server.handle(),
            _serving: spawn_local(server.serve_local(app(handler))),
        }
    }

    /// Asks, and reads up to the first byte of the body.
    async fn begun(&self, request: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\nd") {
            read.push(client.read_u8().await.unwrap());
        }
        client
    }

    async fn begun_in_1_0(&self, path: &str) -> TcpStream {
        self.begun(&format!("GET {path} HTTP/1.0\r\n\r\n")).await
    }
}

async fn assert_reset(mut client: TcpStream) {
    let read = client.read_to_end(&mut Vec::new()).await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_body_that_fails_or_panics_ends_by_a_reset() {
    within(async {
        let server = Tcp::start();
        for path in ["/fails", "/panics"] {
            assert_reset(server.begun_in_1_0(path).await).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_that_the_end_of_the_server_cuts_off_ends_by_a_reset() {
    within(async {
        for end in [Handle::drain, Handle::abort] {
            let server = Tcp::start();
            let client = server.begun_in_1_0("/never").await;
            end(&server.handle);
            assert_reset(client).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_that_the_client_does_not_read_in_time_ends_by_a_reset() {
    within(async {
        let server = Tcp::start();
        let client = server.begun_in_1_0("/long").await;
        // The rest of what came is not read: the client hears of the reset all the same.
        client.ready(Interest::ERROR).await.unwrap();
        let error = client.take_error().unwrap().expect("the socket has failed");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    })
    .await;
}

/// Whatever ends the body: the system would else keep what the client does not take for minutes.
#[tokio::test]
async fn a_body_in_chunks_that_the_client_does_not_read_in_time_ends_by_a_reset() {
    within(async {
        let server = Tcp::start();
        let request = "GET /long HTTP/1.1\r\nHost: test\r\n\r\n";
        let mut client = TcpStream::connect(server.address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        client.ready(Interest::ERROR).await.unwrap();
        let error = client.take_error().unwrap().expect("the socket has failed");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_whole_ends_in_order() {
    within(async {
        let server = Tcp::start();
        let mut client = server.begun_in_1_0("/").await;
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"dddd");
    })
    .await;
}

/// The lack of the last chunk says it, and what was sent is not lost.
#[tokio::test]
async fn a_body_in_chunks_that_fails_needs_no_reset() {
    within(async {
        let server = Tcp::start();
        let request = "GET /fails HTTP/1.1\r\nHost: test\r\n\r\n";
        let mut client = TcpStream::connect(server.address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        let mut read = String::new();
        client.read_to_string(&mut read).await.unwrap();
        assert!(read.ends_with("\r\n\r\n5\r\nddddd\r\n"), "{read:?}");
    })
    .await;
}

#[tokio::test]
async fn the_access_log_tells_what_was_sent_and_what_was_cut() {
    local(async {
        Log::capture();
        let handler = |request: Request<RequestBody>| async move {
            assert_ne!(request.uri().path(), "/panics-at-once", "in the handler");
            let mut response = streamed(stream::iter([Ok::<_, BoxError>(data(5))]));
            response.headers_mut().insert(CONTENT_LENGTH, 10.into());
            Ok(response)
        };
        let server = Rig::with(app(handler), |builder| builder.access_log(true));
        for path in ["/shorter-than-it-says", "/panics-at-once"] {
            let mut client = server.connect().await;
            client.send(get(path)).await;
            client.rest().await;
        }
        let line = |target| Log::line(&["greenroom::access", target]);
        let line_of_short = line("target=/shorter-than-it-says ");
        assert!(line_of_short.contains(" cut=true"), "{line_of_short}");
        let line_of_panic = line("target=/panics-at-once ");
        assert!(!line_of_panic.contains(" bytes=0"), "{line_of_panic}");
    })
    .await;
}
