//! Real clients that read a response frame by frame, each before the server makes the next. Some
//! pass on a chunk only when they have read it to its end, so none of it may wait for the bytes
//! behind it.

mod outside;

use std::convert::Infallible;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::routing::get;
use futures_util::stream;
use greenroom::{Address, Handle, Server};
use outside::{http, tools};
use tokio::sync::Semaphore;

const DEADLINE: Duration = Duration::from_mins(1);

/// The first use of Go compiles its standard library.
const BUILD_DEADLINE: Duration = Duration::from_mins(5);

/// The frames' lengths: short ones are copied to the other bytes to be sent, long ones are sent
/// from where they are.
const LENGTHS: [usize; 6] = [6, 40_000, 1, 17_000, 300_000, 6];

/// A server of `/parts`, which makes each frame when `/next` was requested after the one before.
struct Parts {
    address: SocketAddr,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Parts {
    fn start() -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::builder().listen(any_port).bind();
        let server = server.expect("there is a free port");
        let Address::Tcp(address) = server.local_addresses()[0] else {
            panic!("a TCP address was named")
        };
        let handle = server.handle();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime can be made");
            let report = runtime.block_on(server.serve(application()));
            report.expect("the server ends in order");
        });
        Self {
            address,
            handle,
            thread: Some(thread),
        }
    }

    /// Returns a command with the server's address and its frames' lengths in the environment.
    fn client(&self, program: impl AsRef<std::ffi::OsStr>, script: Option<&str>) -> Command {
        let mut client = tools::bounded(program, DEADLINE);
        client.env("no_proxy", "127.0.0.1");
        client.args(script.map(script_of_parts));
        client.arg(format!("http://{}", self.address));
        client.args(LENGTHS.map(|length| length.to_string()));
        client
    }

    fn curl(&self, options: &[&str], path: &str) -> Command {
        let mut curl = tools::bounded(tools::system("curl"), DEADLINE);
        curl.args(["--disable", "--silent", "--show-error", "--noproxy", "*"])
            .args(options)
            .arg(format!("http://{}{path}", self.address));
        curl
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.handle.abort();
        if let Some(thread) = self.thread.take() {
            // A panic there has already been printed, and the client has failed too.
            let _ended = thread.join();
        }
    }
}

fn application() -> Router {
    Router::new()
        .route("/parts", get(parts))
        .route("/next", get(next))
        .route("/broken", get(broken))
        .with_state(Arc::new(Semaphore::new(0)))
}

async fn parts(State(acknowledged): State<Arc<Semaphore>>) -> Body {
    let parts = stream::unfold(0, move |number| {
        let acknowledged = Arc::clone(&acknowledged);
        async move {
            if number > 0 {
                acknowledged.acquire().await.ok()?.forget();
            }
            let part = part(number)?;
            Some((Ok::<_, Infallible>(part), number + 1))
        }
    });
    Body::from_stream(parts)
}

async fn next(State(acknowledged): State<Arc<Semaphore>>) {
    acknowledged.add_permits(1);
}

async fn broken() -> Body {
    let parts = [Ok("begun"), Err(io::Error::other("the disk is gone"))];
    Body::from_stream(stream::iter(parts))
}

/// Returns a frame: the first is of the letter a, the second of b.
fn part(number: usize) -> Option<Bytes> {
    let letter = b'a' + u8::try_from(number).ok()?;
    let length = *LENGTHS.get(number)?;
    Some(Bytes::from(vec![letter; length]))
}

fn script_of_parts(name: &str) -> std::path::PathBuf {
    tools::script("clients/parts").join(name)
}

fn read_by(program: impl AsRef<std::ffi::OsStr>, script: &str) {
    let server = Parts::start();
    tools::run(&mut server.client(program, Some(script))).expect_success(script);
}

fn python(script: &str) {
    let server = Parts::start();
    let mut client = server.client(tools::installed("python/bin/python"), Some(script));
    client.env("PYTHONDONTWRITEBYTECODE", "1");
    tools::run(&mut client).expect_success(script);
}

#[test]
fn python_requests() {
    python("requests_parts.py");
}

#[test]
fn python_httpx() {
    python("httpx_parts.py");
}

#[test]
fn python_aiohttp() {
    python("aiohttp_parts.py");
}

#[test]
fn node_fetch_and_http() {
    read_by(tools::system("node"), "parts.mjs");
}

#[test]
fn perl_lwp_and_http_tiny() {
    read_by(tools::system("perl"), "parts.pl");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn java_http_client() {
    if !tools::is_on_path("javac") {
        eprintln!("skipped: there is no JDK, which must compile the client");
        return;
    }
    read_by("java", "Parts.java");
}

#[test]
fn go_net_http() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let program = directory.path().join("client");
    let mut build = tools::bounded(tools::system("go"), BUILD_DEADLINE);
    build.args(["build", "-o"]).arg(&program);
    build.arg(script_of_parts("parts.go"));
    tools::run(&mut build).expect_success("go build");
    let server = Parts::start();
    tools::run(&mut server.client(program, None)).expect_success("Go's net/http");
}

#[test]
fn curl_without_a_buffer() {
    let server = Parts::start();
    let mut curl = server.curl(&["--no-buffer"], "/parts");
    let curl = curl.stdout(Stdio::piped());
    let mut curl = curl.spawn().expect("curl can be started");
    let mut read = curl.stdout.take().expect("standard output is a pipe");
    for (number, length) in LENGTHS.into_iter().enumerate() {
        let mut found = vec![0; length];
        read.read_exact(&mut found)
            .unwrap_or_else(|error| panic!("part {number} does not come: {error}"));
        assert!(Some(found.into()) == part(number), "part {number}");
        http::get(server.address, "/next", DEADLINE).expect("/next gets its response");
    }
    let mut rest = Vec::new();
    read.read_to_end(&mut rest).expect("the pipe ends");
    assert_eq!(rest, b"");
    assert!(curl.wait().expect("curl is our child").success());
}

/// A client of HTTP/1.0 sees the end of the connection, not that of the body.
#[test]
fn curl_sees_that_a_body_broke_off() {
    let server = Parts::start();
    for version in ["--http1.1", "--http1.0"] {
        let finished = tools::run(&mut server.curl(&[version], "/broken"));
        // A reset takes with it what a client has not read by then.
        let may_be_lost = version == "--http1.0" && finished.stdout.is_empty();
        let is_begun = may_be_lost || finished.stdout == "begun";
        let (out, err) = (&finished.stdout, &finished.stderr);
        assert!(is_begun, "{version}: {out:?} {err}");
        assert!(!finished.succeeded, "{version}");
    }
}
