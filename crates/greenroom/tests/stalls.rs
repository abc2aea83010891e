//! A task that holds up a loop is named in the log, while it does.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::http::Uri;
use axum::routing::get;
use greenroom::{Handle, Limits, Placement, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const HUNG: Duration = Duration::from_mins(1);

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static LOGGED: Condvar = Condvar::new();

/// The log of all tests of this program.
struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        LOGGED.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the first line of the log that has all of these words.
fn line_of(log: &[u8], words: &[&str]) -> Option<String> {
    let log = String::from_utf8_lossy(log);
    let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
    log.lines().find(has_all).map(str::to_owned)
}

fn logged(words: &[&str]) -> Option<String> {
    line_of(&LOG.lock().unwrap(), words)
}

/// Blocks the calling thread, which is a loop's, until this is in the log.
fn block_until_logged(words: &[&str]) {
    let is_missing = |log: &mut Vec<u8>| line_of(log, words).is_none();
    let log = LOGGED.wait_timeout_while(LOG.lock().unwrap(), HUNG, is_missing);
    drop(log.unwrap());
}

struct Running {
    address: SocketAddr,
    handle: Handle,
    serving: JoinHandle<()>,
}

/// Starts a server of a single loop. All are called `loop-0`: tests tell their lines apart by their
/// routes.
fn start(app: Router, limits: Limits) -> Running {
    start_loops(1, app, limits)
}

fn start_loops(loops: usize, app: Router, limits: Limits) -> Running {
    let subscriber = tracing_subscriber::fmt().with_writer(|| Log);
    let _set_by_another_test = subscriber.with_ansi(false).try_init();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let builder = Server::builder()
        .loops(loops.try_into().unwrap())
        .limits(limits);
    let server = builder.listener(listener).bind().unwrap();
    let handle = server.handle();
    let serving = tokio::spawn(async move {
        server.serve(app).await.unwrap();
    });
    Running {
        address,
        handle,
        serving,
    }
}

impl Running {
    async fn get(&self, path: &str) -> String {
        get_from(self.address, path).await
    }

    async fn end(self) {
        self.handle.drain();
        self.serving.await.unwrap();
    }
}

async fn get_from(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

async fn within<F: Future>(test: F) -> F::Output {
    let test = tokio::time::timeout(HUNG, test);
    test.await.expect("the test hangs")
}

/// Serves a route whose handler with `?hold` spawns a task that blocks its loop until this is in
/// the log, and sends a request to it.
async fn hold_up(path: &str, said: &'static [&'static str]) {
    let handler = move |uri: Uri| async move {
        if uri.query() == Some("hold") {
            tokio::spawn(async { block_until_logged(said) });
        }
        "response"
    };
    let route = Router::new().route(path, get(handler));
    let running = start(route.layer(Placement::inline()), Limits::default());
    // The server's own placement yields to the inner one with the first request.
    for target in [path.to_owned(), format!("{path}?hold"), path.to_owned()] {
        assert!(running.get(&target).await.ends_with("response"));
    }
    running.end().await;
}

#[tokio::test]
async fn a_spawned_task_that_holds_up_its_loop_is_named_and_counted() {
    // Or that it hangs, if the loop was held up by another task less than a second before.
    const SAID: &[&str] = &["greenroom_stage", " a task h", "GET /stalls/warned"];
    within(hold_up("/stalls/warned", SAID)).await;
    let line = logged(SAID).unwrap();
    assert!(line.contains("name=\"loop-0\""), "{line}");
    let task = if cfg!(tokio_unstable) {
        file!()
    } else {
        "spawned on this loop"
    };
    assert!(line.contains(task), "{line}");
}

#[tokio::test]
async fn a_task_that_blocks_for_a_second_is_an_error() {
    const SAID: &[&str] = &["ERROR", "a task hangs on a loop", "GET /stalls/hangs"];
    within(hold_up("/stalls/hangs", SAID)).await;
    assert!(logged(SAID).unwrap().contains("doing=\""));
}

#[tokio::test]
async fn what_held_up_a_loop_is_counted_in_its_status() {
    static SERVER: OnceLock<Handle> = OnceLock::new();
    let stalls = || SERVER.get().unwrap().status().loops[0].stalls;
    let handler = move |uri: Uri| async move {
        if uri.query() == Some("hold") {
            tokio::spawn(async move {
                while stalls() == 0 {
                    std::thread::yield_now();
                }
            });
        }
        "response"
    };
    within(async {
        let app = Router::new().route("/stalls/counted", get(handler));
        let running = start(app, Limits::default());
        SERVER.set(running.handle.clone()).unwrap();
        running.get("/stalls/counted?hold").await;
        // The task runs when the loop comes to it, which may be after the response.
        while stalls() == 0 {
            tokio::task::yield_now().await;
        }
        running.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_loop_that_has_ended_is_not_said_to_hang_while_another_drains() {
    const LATER: &[&str] = &["ERROR", "a task hangs on a loop", "GET /stalls/later"];
    static BEGUN: Notify = Notify::const_new();
    static RELEASED: Notify = Notify::const_new();
    let handler = || async {
        BEGUN.notify_one();
        RELEASED.notified().await;
        "response"
    };
    within(async {
        let app = Router::new().route("/stalls/slow", get(handler));
        let running = start_loops(4, app, Limits::default());
        let address = running.address;
        let slow = tokio::spawn(get_from(address, "/stalls/slow"));
        BEGUN.notified().await;
        running.handle.drain();
        // By then all loops have stood for a second, and what is said of one is said of all.
        hold_up("/stalls/later", LATER).await;
        RELEASED.notify_one();
        assert!(slow.await.unwrap().ends_with("response"));
        running.serving.await.unwrap();
    })
    .await;
    // The slow request is on one of them; other tests have no more than `loop-0`.
    for name in ["loop-1", "loop-2", "loop-3"] {
        assert_eq!(logged(&["a task hangs on a loop", name]), None);
    }
}
