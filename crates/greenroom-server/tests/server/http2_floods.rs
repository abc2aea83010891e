//! Floods of frames over HTTP/2: none makes the server keep more than it does for others, or for
//! longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom_server::RequestBody;
use http::Request;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::http2_frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, Frames, GOAWAY, HEADERS, PING, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, frame, packed,
};
use crate::rig::{Dropped, Reply, Rig, app, assert_elapsed, local, settle, text};

const SECOND: Duration = Duration::from_secs(1);
/// Error codes (RFC 9113, 7).
const CANCEL: [u8; 4] = [0, 0, 0, 8];
const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 11];

/// A server that counts the requests for `/never`, and is told when each of them is over.
fn serve() -> (Rig, Arc<AtomicUsize>, mpsc::UnboundedReceiver<Instant>) {
    let (tell, told) = mpsc::unbounded_channel();
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let handler = move |request: Request<RequestBody>| {
        let (tell, begun) = (tell.clone(), Arc::clone(&counted));
        async move {
            if request.uri().path() == "/never" {
                begun.fetch_add(1, Ordering::Relaxed);
                let _kept = Dropped(tell);
                std::future::pending::<()>().await;
            }
            Reply::Ok(text("ok"))
        }
    };
    (Rig::start(app(handler)), begun, told)
}

fn head(path: &str) -> Vec<u8> {
    packed(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", path),
    ])
}

/// The connection ended with a GOAWAY that says so.
fn assert_calmed(frames: &[Frame]) {
    let told = frames.iter().filter(|frame| frame.kind == GOAWAY);
    let codes: Vec<_> = told.map(|frame| &frame.content[4..8]).collect();
    assert!(codes.contains(&&ENHANCE_YOUR_CALM[..]), "{codes:?}");
}

#[tokio::test(start_paused = true)]
async fn rapid_resets_end_the_connection_and_reach_no_application() {
    local(async {
        let (server, begun, _told) = serve();
        let mut client = Frames::with_window(&server.path, 65_535).await;
        let mut flood = Vec::new();
        for number in 0..1_000 {
            let id = 2 * number + 1;
            flood.extend(frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                id,
                &head("/never"),
            ));
            flood.extend(frame(RST_STREAM, 0, id, &CANCEL));
        }
        client.send_all(&flood).await;
        assert_calmed(&client.rest().await);
        assert!(begun.load(Ordering::Relaxed) <= 100, "{begun:?}");
    })
    .await;
}

/// As `MadeYouReset` (CVE-2025-8671) does it: by a window that is too large the client has the
/// server reset each stream, so it never resets one itself.
#[tokio::test(start_paused = true)]
async fn faults_that_make_the_server_reset_streams_end_the_connection() {
    local(async {
        let (server, begun, mut told) = serve();
        let mut client = Frames::with_window(&server.path, 65_535).await;
        let flags = END_STREAM | END_HEADERS;
        for number in 0..1_024 {
            let id = 2 * number + 1;
            client.send(HEADERS, flags, id, &head("/never")).await;
            while begun.load(Ordering::Relaxed) <= number as usize {
                settle().await;
            }
            client.open(id, 0x7fff_ffff).await;
            told.recv().await.unwrap();
        }
        client.send(HEADERS, flags, 2_049, &head("/never")).await;
        client.open(2_049, 0x7fff_ffff).await;
        assert_calmed(&client.rest().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reset_ends_its_handler() {
    local(async {
        let (server, begun, mut told) = serve();
        let mut client = Frames::with_window(&server.path, 65_535).await;
        for number in 0..1_000 {
            let id = 2 * number + 1;
            let flags = END_STREAM | END_HEADERS;
            client.send(HEADERS, flags, id, &head("/never")).await;
            while begun.load(Ordering::Relaxed) <= number as usize {
                settle().await;
            }
            client.send(RST_STREAM, 0, id, &CANCEL).await;
            told.recv().await.unwrap();
        }
        client.get(2_001, "/").await;
        assert_eq!(client.response(2_001).await, (200, "ok".to_owned()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_of_many_continuations_ends_the_connection() {
    local(async {
        for length in [0, 16_384] {
            let (server, ..) = serve();
            let mut client = Frames::with_window(&server.path, 65_535).await;
            client.send(HEADERS, 0, 1, &head("/")).await;
            // One literal that never ends.
            let mut part = vec![b'x'; length];
            if length > 0 {
                part[..6].copy_from_slice(&[0, 1, b'x', 0x7f, 0x80, 0x7f]);
            }
            for _ in 0..100 {
                client.send(CONTINUATION, 0, 1, &part).await;
            }
            let frames = client.rest().await;
            assert!(frames.iter().any(|frame| frame.kind == GOAWAY), "{length}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn empty_data_without_end_ends_the_connection() {
    local(async {
        let (server, ..) = serve();
        let mut client = Frames::with_window(&server.path, 65_535).await;
        client.send(HEADERS, END_HEADERS, 1, &head("/never")).await;
        let empty = frame(DATA, 0, 1, &[]);
        for _ in 0..100 {
            client.send_all(&empty.repeat(1_000)).await;
        }
        assert_calmed(&client.rest().await);
    })
    .await;
}

/// Frames that have to be acknowledged are not read ahead of their acknowledgement.
#[tokio::test(start_paused = true)]
async fn who_takes_no_acknowledgements_is_disconnected_after_30_s() {
    local(async {
        for asked in [frame(PING, 0, 0, &[7; 8]), frame(SETTINGS, 0, 0, &[])] {
            let (server, ..) = serve();
            let mut client = Frames::with_window(&server.path, 65_535).await;
            client.send(HEADERS, END_HEADERS, 1, &head("/never")).await;
            let since = Instant::now();
            let mut sent = 0;
            while client.send_all(&asked.repeat(100)).await {
                sent += 100 * asked.len();
                assert!(sent < 4_000_000, "all of it is read");
            }
            assert_elapsed(since, 30 * SECOND);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn frames_that_ask_for_nothing_keep_no_connection() {
    local(async {
        let update = frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]);
        for asked in [frame(PING, 1, 0, &[7; 8]), update] {
            let (server, ..) = serve();
            let mut client = Frames::with_window(&server.path, 65_535).await;
            client.get(1, "/").await;
            assert_eq!(client.response(1).await.0, 200);
            let since = Instant::now();
            while client.send_all(&asked.repeat(100)).await {
                sleep(SECOND).await;
            }
            let elapsed = since.elapsed().as_secs();
            assert!((75..80).contains(&elapsed), "{elapsed}");
        }
    })
    .await;
}
