//! Bodies whose rest is a file's, and is sent from there.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use greenroom_server::{App, BoxError, FileRest, Limits, Server};
use http::Response;
use http::header::CONTENT_LENGTH;
use http_body::Frame;
use rustix::fs::{Advice, fadvise};
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use crate::client::{Client, get};
use crate::listening::{ANY_PORT, tcp_address};
use crate::rig::{Body, Dropped, Rig, app, local, streamed, text, within};
use crate::timeouts_response::assert_given_up;

const SECOND: Duration = Duration::from_secs(1);
const FILE_BYTES: usize = 5_000_001;
/// The bytes of each frame of a body that is not sent from its file.
const FRAME_BYTES: usize = 10_000;

fn content() -> Vec<u8> {
    (0..=250).cycle().take(FILE_BYTES).collect()
}

fn file() -> Arc<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content()).unwrap();
    Arc::new(file)
}

/// A response whose length is told.
fn sized<S>(frames: S, length: u64) -> Response<Body>
where
    S: Stream<Item = Result<Frame<Bytes>, BoxError>> + Send + 'static,
{
    let mut response = streamed(frames);
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

/// The response of `length` bytes from `start` on, whose body tells how many frames it yielded.
fn response(
    file: &Arc<File>,
    start: u64,
    length: u64,
    yielded: &Arc<AtomicUsize>,
) -> Response<Body> {
    let (file, yielded) = (Arc::clone(file), Arc::clone(yielded));
    let frames = stream::unfold(start, move |at| {
        let left = usize::try_from(start + length - at).unwrap();
        let mut frame = vec![0; left.min(FRAME_BYTES)];
        let read = file.read_at(&mut frame, at).unwrap();
        frame.truncate(read);
        let at = at + read as u64;
        FileRest::new(Arc::clone(&file), at, FILE_BYTES as u64 - at).offer(&frame);
        yielded.fetch_add(1, Ordering::Relaxed);
        let next = (read > 0).then(|| (Ok(Frame::data(Bytes::from(frame))), at));
        async { next }
    });
    sized(frames, length)
}

/// Serves over TCP, never with TLS.
fn serve(app: impl App) -> SocketAddr {
    let server = Server::builder().listen(ANY_PORT).bind().unwrap();
    let address = tcp_address(&server);
    spawn_local(server.serve_local(app));
    address
}

/// Serves the whole file, but for the paths of its parts.
fn serve_file(file: &Arc<File>, yielded: &Arc<AtomicUsize>) -> SocketAddr {
    let (file, yielded) = (Arc::clone(file), Arc::clone(yielded));
    serve(app(move |request| {
        let (start, length) = match request.uri().path() {
            "/part" => (1_000_003, 700_000),
            "/at-once" => (70, 120_000),
            "/short" => (0, 70_000),
            _ => (0, FILE_BYTES as u64),
        };
        let response = response(&file, start, length, &yielded);
        async { Ok(response) }
    }))
}

#[tokio::test]
async fn the_rest_is_sent_from_the_file_and_its_body_is_polled_no_more() {
    within(async {
        let yielded = Arc::default();
        let address = serve_file(&file(), &yielded);
        let mut client = Client::tcp(address).await;
        let content = content();
        let part = content[1_000_003..1_700_003].to_vec();
        let at_once = content[70..120_070].to_vec();
        for (path, expected) in [
            ("/", &content),
            ("/part", &part),
            ("/at-once", &at_once),
            ("/", &content),
        ] {
            let before = yielded.load(Ordering::Relaxed);
            assert!(client.get(path).await.body == *expected, "{path}");
            assert_eq!(
                yielded.load(Ordering::Relaxed) - before,
                1,
                "frames of {path}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_rest_that_is_short_is_copied() {
    within(async {
        let yielded = Arc::default();
        let address = serve_file(&file(), &yielded);
        let mut client = Client::tcp(address).await;
        assert!(client.get("/short").await.body == content()[..70_000]);
        assert!(yielded.load(Ordering::Relaxed) >= 7);
    })
    .await;
}

/// As of requests that are sent ahead of the responses before them.
#[tokio::test]
async fn requests_behind_a_file_are_served_in_their_order() {
    within(async {
        let address = serve_file(&file(), &Arc::default());
        let mut client = Client::tcp(address).await;
        let requests = ["/part", "/at-once", "/short", "/", "/part"].map(get);
        client.send(requests.concat()).await;
        for bytes in [700_000, 120_000, 70_000, FILE_BYTES, 700_000] {
            assert_eq!(client.response().await.body.len(), bytes);
        }
    })
    .await;
}

#[tokio::test]
async fn a_file_is_sent_over_any_connection() {
    within(async {
        let file = file();
        let app = app(move |_| {
            let response = response(&file, 0, FILE_BYTES as u64, &Arc::default());
            async { Ok(response) }
        });
        let server = Rig::start(app);
        let mut client = server.connect().await;
        assert!(client.get("/").await.body == content());
    })
    .await;
}

/// It might count them, or encrypt them.
#[tokio::test]
async fn a_body_whose_frames_are_made_anew_is_read_to_its_end() {
    within(async {
        let file = file();
        let app = app(move |_| {
            let file = Arc::clone(&file);
            let frames = stream::iter(0..FILE_BYTES.div_ceil(FRAME_BYTES));
            let frames = frames.map(move |index| {
                let start = index * FRAME_BYTES;
                let frame = vec![1; FRAME_BYTES.min(FILE_BYTES - start)];
                let at = (start + frame.len()) as u64;
                FileRest::new(Arc::clone(&file), at, FILE_BYTES as u64 - at).offer(&frame);
                Ok(Frame::data(Bytes::from(vec![2; frame.len()])))
            });
            let response = sized(frames, FILE_BYTES as u64);
            async { Ok(response) }
        });
        let server = Rig::start(app);
        let mut client = server.connect().await;
        let body = client.get("/").await.body;
        assert!(body.len() == FILE_BYTES && body.iter().all(|&byte| byte == 2));
    })
    .await;
}

#[tokio::test]
async fn what_is_not_in_memory_is_sent_all_the_same() {
    within(async {
        let file = file();
        file.sync_all().unwrap();
        fadvise(&*file, 0, None, Advice::DontNeed).unwrap();
        let address = serve_file(&file, &Arc::default());
        let mut client = Client::tcp(address).await;
        assert!(client.get("/").await.body == content());
    })
    .await;
}

#[tokio::test]
async fn a_file_that_becomes_shorter_ends_the_connection() {
    within(async {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let length = 1 << 30;
        file.set_len(length).unwrap();
        let served = Arc::clone(&file);
        let address = serve(app(move |_| {
            let frame = vec![0; FRAME_BYTES];
            let rest = length - FRAME_BYTES as u64;
            let offered = Arc::clone(&served);
            let frames = stream::once(async move {
                FileRest::new(offered, FRAME_BYTES as u64, rest).offer(&frame);
                Ok(Frame::data(Bytes::from(frame)))
            });
            let response = sized(frames, length);
            async { Ok(response) }
        }));
        let mut client = Client::tcp(address).await;
        client.send(get("/")).await;
        assert_eq!(client.head().await.0, 200);
        client.read_exactly(2_000_000).await;
        file.set_len(3_000_000).unwrap();
        let rest = client.rest().await.len() as u64;
        assert!(rest < length - 2_000_000, "{rest}");
        let mut other = Client::tcp(address).await;
        other.send(get("/")).await;
        assert_eq!(other.head().await.0, 200);
    })
    .await;
}

/// A server of a file, and what is told when its response is over.
fn told_of(response_rate_min: u64) -> (Rig, mpsc::UnboundedReceiver<Instant>) {
    let (tell, told) = mpsc::unbounded_channel();
    let file = Arc::new(tempfile::tempfile().unwrap());
    let length = 1 << 40;
    file.set_len(length).unwrap();
    let app = app(move |_| {
        let (file, kept) = (Arc::clone(&file), Dropped(tell.clone()));
        let frames = stream::unfold((kept, 0), move |(kept, at)| {
            let frame = vec![0; FRAME_BYTES];
            let at = at + FRAME_BYTES as u64;
            FileRest::new(Arc::clone(&file), at, length - at).offer(&frame);
            async move { Some((Ok(Frame::data(Bytes::from(frame))), (kept, at))) }
        });
        let response = sized(frames, length);
        async { Ok(response) }
    });
    let limits = Limits {
        response_rate_min,
        ..Limits::default()
    };
    (Rig::with(app, |builder| builder.limits(limits)), told)
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_none_of_a_file_is_given_up_after_30_s() {
    local(async { assert_given_up(told_of(1_000), 10_000_000).await }).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_a_file_slowly_but_fast_enough_gets_it() {
    local(async {
        let (server, mut told) = told_of(1_000);
        let mut client = server.connect().await;
        client.send(get("/")).await;
        for _ in 0..100 {
            sleep(20 * SECOND).await;
            assert!(told.try_recv().is_err(), "it was given up");
            client.read_exactly(500_000).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_request_beside_files_is_served() {
    within(async {
        let file = file();
        let app = app(move |request| {
            let response = match request.uri().path() {
                "/hello" => text("hello"),
                _ => response(&file, 0, FILE_BYTES as u64, &Arc::default()),
            };
            async { Ok(response) }
        });
        let server = Rig::start(app);
        let mut readers = Vec::new();
        for _ in 0..20 {
            let mut reader = server.connect().await;
            reader.send(get("/")).await;
            readers.push(reader);
        }
        assert_eq!(server.connect().await.get("/hello").await.text(), "hello");
        for mut reader in readers {
            assert!(reader.response().await.body == content());
        }
    })
    .await;
}
