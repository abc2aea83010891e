//! Connections that the application accepts, of streams that the server does not know.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use greenroom_server::{
    AcceptedStream, Acceptor, Address, App, ConnectionInfo, DrainReport, Error, Handle, Limits,
    Server,
};
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::client::{Client, get, post};
use crate::listening::ANY_PORT;
use crate::rig::{
    Dropped, app, assert_elapsed, endless, local, measure, settle, streamed, text, within,
};

const SECOND: Duration = Duration::from_secs(1);
/// Bytes that a duplex stream holds before its reader has to read.
const HELD_BYTES: usize = 4 * 1_024;

/// Accepts whatever it is given.
#[derive(Debug)]
struct Given(mpsc::UnboundedReceiver<AcceptedStream>);

impl Acceptor for Given {
    fn accept(&mut self) -> Pin<Box<dyn Future<Output = AcceptedStream> + Send + '_>> {
        Box::pin(async {
            match self.0.recv().await {
                Some(stream) => stream,
                None => panic!("nothing more is given"),
            }
        })
    }

    fn local_address(&self) -> Address {
        Address::Unix(PathBuf::new())
    }
}

fn info() -> ConnectionInfo {
    ConnectionInfo::new(None, Address::Unix(PathBuf::new()))
}

/// A server on the test's thread that listens nowhere.
pub(crate) struct Rig {
    handle: Handle,
    serving: JoinHandle<Result<DrainReport, Error>>,
    give: mpsc::UnboundedSender<AcceptedStream>,
}

impl Rig {
    fn start(app: impl App) -> Self {
        Self::with(app, Limits::default())
    }

    pub(crate) fn with(app: impl App, limits: Limits) -> Self {
        let (give, given) = mpsc::unbounded_channel();
        let server = Server::builder()
            .loops(2.try_into().unwrap())
            .limits(limits)
            .acceptor(Given(given))
            .bind()
            .unwrap();
        assert_eq!(server.local_addresses(), [info().local]);
        Self {
            handle: server.handle(),
            serving: tokio::task::spawn_local(server.serve_local(app)),
            give,
        }
    }

    pub(crate) fn give<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let stream = AcceptedStream::new(stream, info()).unwrap();
        self.give.send(stream).unwrap();
    }

    pub(crate) fn connect(&self) -> Client {
        let (client, server) = duplex(HELD_BYTES);
        self.give(server);
        Client::over(client)
    }

    async fn ended(self) -> DrainReport {
        self.serving.await.unwrap().unwrap()
    }
}

fn hello() -> Rig {
    Rig::start(app(|_| async { Ok(text("hello")) }))
}

/// Keeps what is written until it is flushed, and tells when it is ended, as TLS does.
struct Keeping {
    stream: DuplexStream,
    kept: Vec<u8>,
    ended: mpsc::UnboundedSender<()>,
}

impl AsyncRead for Keeping {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Keeping {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.kept.len() > HELD_BYTES {
            ready!(self.as_mut().poll_flush(cx))?;
        }
        self.kept.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.kept.is_empty() {
            let Self { stream, kept, .. } = &mut *self;
            let sent = ready!(Pin::new(stream).poll_write(cx, kept))?;
            kept.drain(..sent);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        let _nobody_asks = self.ended.send(());
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_any_type_is_served_and_kept() {
    local(async {
        let server = Rig::start(app(measure));
        let mut client = server.connect();
        for size in [0, 5, 3 * HELD_BYTES, 100_000] {
            let fields = format!("Content-Length: {size}\r\n");
            client.send(post("/", &fields)).await;
            client.send(vec![b'b'; size]).await;
            assert_eq!(client.response().await.text(), size.to_string());
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn long_responses_arrive_whole() {
    local(async {
        let server = Rig::start(app(|_| async { Ok(text(vec![b'a'; 1_000_000])) }));
        let mut client = server.connect();
        for _ in 0..2 {
            assert_eq!(client.get("/").await.body.len(), 1_000_000);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_stream_keeps_is_flushed() {
    local(async {
        let (body_bytes, ended) = (HELD_BYTES * 20, "Connection: close\r\n");
        let server = Rig::start(app(move |request| async move {
            let body = vec![b'a'; body_bytes];
            // Not read: it is passed over when the response is out.
            drop(request);
            Ok(text(body))
        }));
        let (client, stream) = duplex(HELD_BYTES);
        let (tell, mut told) = mpsc::unbounded_channel();
        server.give(Keeping {
            stream,
            kept: Vec::new(),
            ended: tell,
        });
        let mut client = Client::over(client);
        for _ in 0..3 {
            assert_eq!(client.get("/").await.body.len(), body_bytes);
        }
        assert!(told.try_recv().is_err());
        client
            .send(format!("GET / HTTP/1.1\r\nHost: test\r\n{ended}\r\n"))
            .await;
        assert_eq!(client.response().await.body.len(), body_bytes);
        assert!(client.is_closed().await);
        assert!(told.recv().await.is_some(), "it was dropped without an end");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_idle_for_too_long_is_ended() {
    local(async {
        let server = hello();
        let (client, stream) = duplex(HELD_BYTES);
        let (tell, mut told) = mpsc::unbounded_channel();
        server.give(Keeping {
            stream,
            kept: Vec::new(),
            ended: tell,
        });
        let mut client = Client::over(client);
        assert_eq!(client.get("/").await.text(), "hello");
        let since = Instant::now();
        assert!(client.is_closed().await);
        assert_elapsed(since, Limits::default().keep_alive_timeout);
        assert!(told.recv().await.is_some(), "it was dropped without an end");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_gets_408() {
    local(async {
        let server = hello();
        let mut client = server.connect();
        let since = Instant::now();
        assert_eq!(client.response().await.status, 408);
        assert_elapsed(since, Limits::default().head_timeout);
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_is_disconnected() {
    local(async {
        let (tell, mut told) = mpsc::unbounded_channel();
        let server = Rig::start(app(move |_| {
            let kept = Dropped(tell.clone());
            async { Ok(streamed(endless(kept))) }
        }));
        let mut client = server.connect();
        client.send(get("/")).await;
        client.read_exactly(500_000).await;
        let since = Instant::now();
        told.recv().await.unwrap();
        assert_elapsed(since, Limits::default().write_timeout);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connections_are_limited_in_number() {
    local(async {
        let limits = Limits {
            connections_max: 1,
            ..Limits::default()
        };
        let waiting = app(|_| async {
            sleep(10 * SECOND).await;
            Ok(text("waited"))
        });
        let server = Rig::with(waiting, limits);
        let (mut first, mut second) = (server.connect(), server.connect());
        let since = Instant::now();
        first.send(get("/")).await;
        second.send(get("/")).await;
        assert_eq!(first.response().await.text(), "waited");
        assert_elapsed(since, 10 * SECOND);
        // Idle now, it makes room.
        assert!(first.is_closed().await);
        assert_eq!(second.response().await.text(), "waited");
        assert_elapsed(since, 20 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_them_and_drops_the_acceptor() {
    local(async {
        let server = Rig::start(app(|_| async {
            sleep(5 * SECOND).await;
            Ok(text("finished"))
        }));
        let (mut idle, mut busy) = (server.connect(), server.connect());
        idle.get("/").await;
        busy.send(get("/")).await;
        settle().await;
        server.handle.drain();
        assert!(idle.is_closed().await);
        server.give.closed().await;
        let response = busy.response().await;
        assert_eq!(response.text(), "finished");
        assert!(response.closes());
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_that_panics_ends_the_server_with_its_panic() {
    local(async {
        let server = Rig::start(app(|_| async { std::future::pending().await }));
        let mut client = server.connect();
        client.send(get("/")).await;
        settle().await;
        drop(server.give);
        let ended = server.serving.await.unwrap_err().into_panic();
        assert_eq!(*ended.downcast::<&str>().unwrap(), "nothing more is given");
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn http2_is_spoken_over_them() {
    local(async {
        let server = hello();
        let (client, stream) = duplex(HELD_BYTES);
        server.give(stream);
        let io = hyper_util::rt::TokioIo::new(client);
        let executor = hyper_util::rt::TokioExecutor::new();
        let handshake = hyper::client::conn::http2::handshake(executor, io);
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let request =
            http::Request::get("http://test/").body(http_body_util::Empty::<bytes::Bytes>::new());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.version(), http::Version::HTTP_2);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "hello");
    })
    .await;
}

/// Sockets of tokio are served as if the server had accepted them.
#[tokio::test]
async fn sockets_change_to_the_runtime_of_their_loop() {
    within(async {
        let (give, given) = mpsc::unbounded_channel();
        let server = Server::builder()
            .loops(2.try_into().unwrap())
            .acceptor(Given(given));
        let server = server.bind().unwrap();
        let handle = server.handle();
        let name = || std::thread::current().name().unwrap_or_default().to_owned();
        let serving = tokio::spawn(server.serve(app(move |_| async move { Ok(text(name())) })));
        let (client, stream) = UnixStream::pair().unwrap();
        give.send(AcceptedStream::new(stream, info()).unwrap())
            .unwrap();
        let mut unix = Client::over(client);
        let first = unix.get("/").await;
        let listener = TcpListener::bind(ANY_PORT).await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        stream.write_all(get("/").as_bytes()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        give.send(AcceptedStream::new(accepted, info()).unwrap())
            .unwrap();
        let second = Client::over(stream).response().await;
        let mut loops = [first.text(), second.text()];
        loops.sort_unstable();
        assert_eq!(loops, ["loop-0", "loop-1"]);
        handle.drain();
        assert_eq!(serving.await.unwrap().unwrap().aborted, []);
    })
    .await;
}
