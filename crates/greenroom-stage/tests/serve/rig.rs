use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use axum::Router;
use greenroom_stage::{Placement, RouteStatus, Stage, StageBuilder};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// Fails a test that hangs.
pub(crate) async fn within<F: Future>(test: F) -> F::Output {
    tokio::time::timeout(Duration::from_mins(1), test)
        .await
        .expect("the test hangs")
}

/// A stage that rejects nothing by its wait: machines that run tests are slow.
pub(crate) fn patient() -> StageBuilder {
    Stage::builder("serve").queue_wait_max(Duration::from_mins(10))
}

/// A placement for which no run is long by itself, because machines that run tests are slow; stalls
/// are seen all the same.
pub(crate) fn whatever_it_takes(stage: &Stage) -> Placement {
    Placement::auto_on(stage).short_run(Duration::from_hours(1))
}

/// Keeps a thread of the stage computing, until the result is dropped.
pub(crate) async fn compute_on(stage: &Stage) -> oneshot::Sender<()> {
    let (release, mut released) = oneshot::channel();
    let (begun, has_begun) = oneshot::channel();
    let computing = stage.run(move || {
        begun.send(()).unwrap();
        while released.try_recv() == Err(TryRecvError::Empty) {
            std::hint::spin_loop();
        }
    });
    tokio::spawn(computing);
    has_begun.await.unwrap();
    release
}

/// Serves on a single loop, on a thread of its own, for as long as the test runs.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let (send_address, address) = oneshot::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            send_address.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
    });
    address.await.unwrap()
}

/// A connection that is kept.
pub(crate) struct Client(BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    pub(crate) async fn send(&mut self, request: &str) {
        self.0.write_all(request.as_bytes()).await.unwrap();
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"))
            .await;
        self.receive().await
    }

    /// Returns the head of a response, in lower case.
    pub(crate) async fn receive_head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.0.read_line(&mut head).await.unwrap();
            assert!(read > 0, "the connection ended after {head:?}");
        }
        head.to_ascii_lowercase()
    }

    /// Returns the next chunk of a body, empty at its end; `None` if the connection ends before
    /// that.
    pub(crate) async fn receive_chunk(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).await.ok()?;
        let length = usize::from_str_radix(line.strip_suffix("\r\n")?, 16).unwrap();
        let mut chunk = vec![0; length + 2];
        self.0.read_exact(&mut chunk).await.ok()?;
        chunk.truncate(length);
        Some(String::from_utf8(chunk).unwrap())
    }

    pub(crate) async fn receive(&mut self) -> Response {
        let head = self.receive_head().await;
        let length = field(&head, "content-length").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        Response {
            status: head["http/1.1 ".len()..][..3].parse().unwrap(),
            head,
            body: String::from_utf8(body).unwrap(),
        }
    }
}

impl Response {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    { fields }.find_map(|(known, value)| (known == name).then_some(value))
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Response {
    Client::connect(address).await.get(path).await
}

/// Returns the route of this path; each test has paths of its own.
pub(crate) fn route(path: &str) -> RouteStatus {
    let mut routes = greenroom_stage::status().routes.into_iter();
    routes
        .find(|route| route.path == path)
        .expect("it had a request")
}
