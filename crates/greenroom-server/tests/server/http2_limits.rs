//! Limits on what a client over HTTP/2 may hold, and on its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use greenroom_server::{Limits, RequestBody};
use http::{Request, Response};
use http_body::Frame;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};

use crate::client::get;
use crate::http2_frames::{
    DATA, END_HEADERS, END_STREAM, FRAME_BYTES_MAX, Frames, GOAWAY, HEADERS, RST_STREAM, packed,
};
use crate::rig::{Body, Reply, Rig, app, assert_elapsed, local, settle, streamed, text};

const SECOND: Duration = Duration::from_secs(1);
const WINDOW_MAX: u32 = 0x7fff_ffff;
/// The chunks that an application gives, and their number: 1 MB.
const PART_BYTES: usize = 20_000;
const PARTS: usize = 50;

/// A response of 1 MB, made as it is asked for, which counts what it was asked for.
fn counted(asked: &Arc<AtomicUsize>) -> Response<Body> {
    let asked = Arc::clone(asked);
    streamed(stream::iter(0..PARTS).map(move |_| {
        asked.fetch_add(PART_BYTES, Ordering::Relaxed);
        Ok(Frame::data(vec![b'p'; PART_BYTES].into()))
    }))
}

async fn handler(request: Request<RequestBody>, asked: Arc<AtomicUsize>) -> Reply {
    match request.uri().path() {
        "/mega" => Ok(counted(&asked)),
        "/whole" => Ok(text(vec![b'w'; 1_000_000])),
        "/small" => Ok(text(vec![b's'; 1_000])),
        "/never" => std::future::pending().await,
        "/hourly" => {
            let parts = stream::iter(0..5).then(|_| async {
                sleep(3_600 * SECOND).await;
                Ok(Frame::data(Bytes::from_static(b"still here\n")))
            });
            Ok(streamed(parts))
        }
        path => Ok(text(path.to_owned())),
    }
}

fn serve() -> (Rig, Arc<AtomicUsize>) {
    let asked = Arc::default();
    let of_handler = Arc::clone(&asked);
    let server = Rig::start(app(move |request| {
        handler(request, Arc::clone(&of_handler))
    }));
    (server, asked)
}

fn resets(frames: &[crate::http2_frames::Frame]) -> usize {
    frames
        .iter()
        .filter(|frame| frame.kind == RST_STREAM)
        .count()
}

/// A GET for each of a hundred streams.
async fn get_all(client: &mut Frames, path: &str) {
    for number in 0..100 {
        client.get(2 * number + 1, path).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_opens_no_window_is_asked_little_for_and_is_disconnected_after_30_s() {
    local(async {
        for path in ["/mega", "/whole", "/small"] {
            let (server, asked) = serve();
            let clients = (0..5).map(|_| async {
                let mut client = Frames::with_window(&server.path, 0).await;
                get_all(&mut client, path).await;
                let since = Instant::now();
                let frames = client.rest().await;
                let elapsed = since.elapsed();
                assert!(
                    elapsed >= 30 * SECOND && elapsed < 33 * SECOND,
                    "{elapsed:?}"
                );
                assert_eq!(resets(&frames), 100, "{path}");
                assert!(frames.iter().any(|frame| frame.kind == GOAWAY));
            });
            futures_util::future::join_all(clients).await;
            // One part of each stream, where there were 500 MB to be had.
            let most = 500 * PART_BYTES;
            assert!(asked.load(Ordering::Relaxed) <= most, "{asked:?}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_reads_nothing_is_asked_little_for_and_is_disconnected_after_30_s() {
    local(async {
        let (server, asked) = serve();
        let mut client = Frames::with_window(&server.path, WINDOW_MAX).await;
        client.open(0, WINDOW_MAX - 65_535).await;
        get_all(&mut client, "/mega").await;
        sleep(20 * SECOND).await;
        // A part of each stream, 256 KiB of all, and what the system takes.
        let most = 100 * PART_BYTES + 262_144 + 1_000_000;
        assert!(asked.load(Ordering::Relaxed) <= most, "{asked:?}");
        sleep(15 * SECOND).await;
        let received: usize = client
            .rest()
            .await
            .iter()
            .map(|frame| frame.content.len())
            .sum();
        assert!(received < 2_000_000, "{received}");
    })
    .await;
}

/// However many streams there might be, and where there is little to hold.
#[tokio::test(start_paused = true)]
async fn a_long_response_that_is_alone_comes_in_frames_of_full_length() {
    local(async {
        for (streams_max, kibibytes) in [(250, 256), (u32::MAX, 256), (100, 64)] {
            let limits = Limits {
                streams_max,
                output_bytes_max: kibibytes * 1_024,
                ..Limits::default()
            };
            let respond = |request| handler(request, Arc::default());
            let server = Rig::with(app(respond), |builder| builder.limits(limits));
            let mut client = Frames::with_window(&server.path, WINDOW_MAX).await;
            client.open(0, WINDOW_MAX - 65_535).await;
            client.get(1, "/whole").await;
            let lengths = lengths_of_data(&mut client).await;
            assert_eq!(lengths.iter().sum::<usize>(), 1_000_000);
            let frames = 1_000_000_usize.div_ceil(FRAME_BYTES_MAX);
            assert_eq!(lengths.len(), frames, "{streams_max} {kibibytes}");
        }
    })
    .await;
}

/// The lengths of the frames of a response, the only one to come.
async fn lengths_of_data(client: &mut Frames) -> Vec<usize> {
    let mut lengths = Vec::new();
    loop {
        let frame = client.next().await.expect("the response goes on");
        if frame.kind == DATA && !frame.content.is_empty() {
            lengths.push(frame.content.len());
        }
        if frame.flags & END_STREAM != 0 {
            return lengths;
        }
    }
}

/// Though there are more streams than could have a KiB each, none is held up by those that are not
/// read.
#[tokio::test(start_paused = true)]
async fn what_many_streams_hold_is_limited_and_none_holds_up_another() {
    local(async {
        let limits = Limits {
            streams_max: 250,
            output_bytes_max: 64 * 1_024,
            // Of which a response that is not taken leaves enough to be served.
            memory_max: 128 * 1_024,
            ..Limits::default()
        };
        let respond = |request| handler(request, Arc::default());
        let server = Rig::with(app(respond), |builder| builder.limits(limits));
        let mut client = Frames::with_window(&server.path, 0).await;
        client.open(0, WINDOW_MAX - 65_535).await;
        for number in 0..249 {
            client.get(2 * number + 1, "/whole").await;
            settle().await;
        }
        sleep(SECOND).await;
        assert_eq!(server.connect().await.get("/other").await.status, 200);
        client.get(499, "/whole").await;
        client.open(499, WINDOW_MAX).await;
        assert_eq!(client.said(499).await.len(), 1_000_000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_read_is_reset_and_holds_up_no_other() {
    local(async {
        let (server, _) = serve();
        let mut client = Frames::with_window(&server.path, 0).await;
        client.open(0, WINDOW_MAX - 65_535).await;
        client.get(1, "/never").await;
        for id in (3..103).step_by(2) {
            client.get(id, "/mega").await;
        }
        let since = Instant::now();
        for id in (103..163).step_by(2) {
            client.get(id, "/whole").await;
            client.open(id, WINDOW_MAX).await;
            let mut bytes = 0;
            loop {
                let frame = client.next().await.unwrap();
                if frame.kind != DATA || frame.id != id {
                    continue;
                }
                bytes += frame.content.len();
                if frame.flags & END_STREAM != 0 {
                    break;
                }
            }
            assert_eq!(bytes, 1_000_000);
        }
        assert!(since.elapsed() < 20 * SECOND);
        for _ in 0..50 {
            assert_eq!(client.next().await.unwrap().kind, RST_STREAM);
        }
        assert_elapsed(since, 30 * SECOND);
        // Its connection goes on: a request of it is under way.
        client.get(201, "/still").await;
        client.open(201, 100).await;
        assert_eq!(client.response(201).await.1, "/still");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn without_a_rate_who_takes_little_but_something_is_not_disconnected() {
    local(async {
        // Its pings would have to be replied to while this client waits.
        let limits = Limits {
            keep_alive_timeout: 86_400 * SECOND,
            response_rate_min: 0,
            ..Limits::default()
        };
        let respond = |request| handler(request, Arc::default());
        let server = Rig::with(app(respond), |builder| builder.limits(limits));
        let mut client = Frames::with_window(&server.path, 1).await;
        for (id, path) in [(1, "/mega"), (3, "/whole")] {
            client.get(id, path).await;
        }
        let mut received = 0;
        for opened in 0..100 {
            while received < 2 * (1 + 10 * opened) {
                let frame = client.next().await.unwrap();
                assert_ne!(frame.kind, RST_STREAM);
                if frame.kind == DATA {
                    received += frame.content.len();
                }
            }
            sleep(25 * SECOND).await;
            client.open(1, 10).await;
            client.open(3, 10).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_nothing_to_send_lasts_for_hours() {
    local(async {
        let (server, _) = serve();
        let mut client = Frames::with_window(&server.path, 100).await;
        client.get(1, "/hourly").await;
        let since = Instant::now();
        assert_eq!(client.response(1).await.1, "still here\n".repeat(5));
        assert!(since.elapsed() >= 5 * 3_600 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_nothing_is_told_to_leave_after_10_s() {
    local(async {
        let (server, _) = serve();
        let since = Instant::now();
        let mut bare = Frames::connect(&server.path).await;
        let mut greeted = Frames::with_window(&server.path, 0).await;
        for client in [&mut bare, &mut greeted] {
            let frames = client.rest().await;
            assert!(
                frames.iter().all(|frame| frame.kind == GOAWAY),
                "{frames:?}"
            );
        }
        let elapsed = since.elapsed();
        assert!(
            elapsed >= 10 * SECOND && elapsed < 13 * SECOND,
            "{elapsed:?}"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_is_aborted_after_10_s() {
    local(async {
        let (server, _) = serve();
        let mut client = Frames::with_window(&server.path, 65_535).await;
        client.get(1, "/first").await;
        assert_eq!(client.response(1).await.1, "/first");
        sleep(20 * SECOND).await;
        let since = Instant::now();
        let head = packed(&[(":method", "GET"), (":scheme", "http"), (":path", "/")]);
        client.send(HEADERS, END_STREAM, 3, &head).await;
        client.rest().await;
        assert_elapsed(since, 10 * SECOND);
        let mut client = Frames::with_window(&server.path, 65_535).await;
        client
            .send(HEADERS, END_STREAM | END_HEADERS, 1, &head)
            .await;
        client.response(1).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn idle_connections_make_room_for_new_ones_and_busy_ones_do_not() {
    local(async {
        let limits = Limits {
            connections_max: 10,
            ..Limits::default()
        };
        let asked = Arc::default();
        let respond = move |request| handler(request, Arc::clone(&asked));
        let server = Rig::with(app(respond), |builder| builder.limits(limits));
        let mut busy = Frames::with_window(&server.path, 65_535).await;
        busy.get(1, "/never").await;
        let mut idle = Vec::new();
        for _ in 0..9 {
            let mut client = Frames::with_window(&server.path, 65_535).await;
            client.get(1, "/once").await;
            assert_eq!(client.response(1).await.1, "/once");
            idle.push(client);
        }
        settle().await;
        // Shorter than it takes to be closed for being idle.
        let all = timeout(60 * SECOND, async {
            let mut clients = Vec::new();
            for _ in 0..9 {
                let mut client = server.connect().await;
                client.send(get("/new")).await;
                assert_eq!(client.response().await.text(), "/new");
                clients.push(client);
            }
        });
        all.await.expect("nobody made room");
        busy.get(3, "/still").await;
        assert_eq!(busy.response(3).await.1, "/still");
        let goaway = spawn_local(async move { idle[0].rest().await }).await;
        assert!(goaway.unwrap().iter().any(|frame| frame.kind == GOAWAY));
    })
    .await;
}
