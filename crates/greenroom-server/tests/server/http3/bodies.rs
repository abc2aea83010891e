use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use greenroom_server::Limits;
use h3::error::Code;
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body::Frame;
use quinn::TransportConfig;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use super::rig::{Client, Rig, client, client_with, endpoint, receive, uri};
use super::{SECOND, handler};
use crate::over::{NAME, client_config};
use crate::rig::{Dropped, app, assert_elapsed, endless, local, streamed, text, within};

/// Bytes of a request's body that may be on their way to an application that takes none: the
/// window of its stream.
const WINDOW_BYTES: usize = 256 * 1_024;
const PART_BYTES: usize = 64 * 1_024;

#[tokio::test]
async fn bodies_go_both_ways_with_their_trailers() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        let body = Bytes::from(vec![b'b'; 10_000_000]);
        assert_eq!(client.post("/measure", body.clone()).await.1, "10000000");
        // What comes back before all is sent fits into the windows.
        let body = body.slice(..200_000);
        let request = Request::post(uri("/echo")).body(body.clone()).unwrap();
        let response = client.ask(request).await;
        assert_eq!(response.body, body);
        let request = Request::get(uri("/trailers")).body(Bytes::new()).unwrap();
        let response = client.ask(request).await;
        assert_eq!(response.text(), "content");
        assert_eq!(response.trailers.unwrap()["checksum"], "17");
        // Trailers of a request go the other way.
        let mut stream = client
            .begin(Request::post(uri("/echo")).body(()).unwrap())
            .await
            .unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("sum", HeaderValue::from_static("3"));
        stream.send_data(Bytes::from("abc")).await.unwrap();
        stream.send_trailers(trailers).await.unwrap();
        stream.finish().await.unwrap();
        let response = receive(&mut stream).await.unwrap();
        assert_eq!(response.text(), "abc");
        assert_eq!(response.trailers.unwrap()["sum"], "3");
    })
    .await;
}

#[tokio::test]
async fn a_wrong_length_is_corrected() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        for (path, length, content) in [("/wrong-length", "12", "twelve bytes"), ("/205", "0", "")]
        {
            let request = Request::get(uri(path)).body(Bytes::new()).unwrap();
            let response = client.ask(request).await;
            assert_eq!(response.head.headers()["content-length"], length);
            assert_eq!(response.text(), content);
        }
    })
    .await;
}

#[tokio::test]
async fn a_response_to_head_has_the_length_and_no_content() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = Method::HEAD;
        *request.uri_mut() = uri("/12345").parse().unwrap();
        let response = client.ask(request).await;
        assert_eq!(response.head.headers()["content-length"], "6");
        assert!(response.head.headers().contains_key("date"));
        assert!(response.body.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_reads_waits_at_the_client() {
    local(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        let mut stream = client
            .begin(Request::post(uri("/never")).body(()).unwrap())
            .await
            .unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        tokio::task::spawn_local(async move {
            while stream
                .send_data(Bytes::from(vec![b'b'; PART_BYTES]))
                .await
                .is_ok()
            {
                count.fetch_add(PART_BYTES, Ordering::Relaxed);
            }
        });
        sleep(5 * SECOND).await;
        let sent = sent.load(Ordering::Relaxed);
        // h3 waits for its write, so what it says it has sent is within the window.
        assert!((1..=WINDOW_BYTES).contains(&sent), "{sent}");
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn bodies_that_nobody_reads_hold_up_no_other_request() {
    local(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        for count in 1..=12 {
            let head = Request::post(uri("/never")).body(()).unwrap();
            let mut stream = client.begin(head).await.unwrap();
            tokio::task::spawn_local(async move {
                let body = Bytes::from(vec![b'b'; 2 * WINDOW_BYTES]);
                let sent = stream.send_data(body).await;
                panic!("nobody took it: {sent:?}");
            });
            sleep(SECOND).await;
            let other = timeout(5 * SECOND, client.get("/other")).await;
            let other = other.unwrap_or_else(|_| panic!("behind {count}"));
            assert_eq!(other.1, "/other");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_cap_is_413_and_one_that_is_slow_408() {
    local(async {
        let limits = Limits {
            body_bytes_max: 1_000_000,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let client = server.connect().await;
        let body = |bytes: usize| Bytes::from(vec![b'b'; bytes]);
        assert_eq!(client.post("/measure", body(1_000_000)).await.0, 200);
        // One that is refused need not be sent as a whole.
        let head = Request::post(uri("/measure")).header("content-length", 1_000_001);
        let mut stream = client.begin(head.body(()).unwrap()).await.unwrap();
        let response = receive(&mut stream).await.unwrap();
        assert_eq!(response.head.status(), 413);
        let since = Instant::now();
        let head = Request::post(uri("/measure")).body(()).unwrap();
        let mut stream = client.begin(head).await.unwrap();
        let response = receive(&mut stream).await.unwrap();
        assert_eq!(response.head.status(), 408);
        assert_elapsed(since, 10 * SECOND);
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test]
async fn rfc9114_4_1_2_a_body_that_is_not_as_long_as_its_head_says_is_malformed() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        for body in ["four", "sixsix"] {
            let head = Request::post(uri("/measure")).header("content-length", 5);
            let request = head.body(Bytes::from(body)).unwrap();
            let response = client.ask(request).await;
            assert_eq!(response.head.status(), 400, "{body}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_holds_little_and_is_reset_after_30_s() {
    local(async {
        let (told, mut dropped) = mpsc::unbounded_channel();
        let given = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&given);
        let server = Rig::start(app(move |_| {
            let (told, count) = (told.clone(), Arc::clone(&count));
            async move {
                let parts = endless(Dropped(told)).map(move |part| {
                    count.fetch_add(60_000, Ordering::Relaxed);
                    part
                });
                Ok(streamed(parts))
            }
        }));
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(PART_BYTES_OF_CLIENT.into());
        let config = client_with(client_config(), transport);
        let client = Client::connect(server.address, config).await.unwrap();
        let head = Request::get(uri("/")).body(()).unwrap();
        let mut stream = client.begin(head).await.unwrap();
        stream.recv_response().await.unwrap();
        let since = Instant::now();
        sleep(10 * SECOND).await;
        let taken = given.load(Ordering::Relaxed);
        let taken_max = PART_BYTES_OF_CLIENT as usize + Limits::default().output_bytes_max;
        assert!(taken <= taken_max + 2 * 60_000, "{taken}");
        dropped.recv().await.unwrap();
        assert_elapsed(since, 30 * SECOND);
        let reset = loop {
            match stream.recv_data().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it looks as if it were whole"),
                Err(error) => break error,
            }
        };
        assert!(
            reset
                .to_string()
                .contains(&format!("{}", Code::H3_INTERNAL_ERROR)),
            "{reset}"
        );
    })
    .await;
}

const PART_BYTES_OF_CLIENT: u32 = 64 * 1_024;

/// Bytes of a long response that may be sent before all else of the loop has its turn: the first
/// of it, a round of the loop, and the parts that these end within.
const TURN_BYTES_MAX: usize = 256 * 1_024;

/// Though the client would take all of it at once, and the server may hold as much.
#[tokio::test(start_paused = true)]
async fn a_response_without_end_takes_turns_with_all_else() {
    local(async {
        for part_bytes in [10, 1_000, 60_000] {
            let given = Arc::new(AtomicUsize::new(0));
            let of_app = Arc::clone(&given);
            let app = app(move |_| {
                let given = Arc::clone(&of_app);
                let parts = stream::repeat(Bytes::from(vec![b'e'; part_bytes])).map(move |part| {
                    given.fetch_add(part.len(), Ordering::Relaxed);
                    Ok(Frame::data(part))
                });
                async { Ok(streamed(parts)) }
            });
            let limits = Limits {
                output_bytes_max: usize::MAX,
                ..Limits::default()
            };
            let server = Rig::limited(app, limits);
            let mut transport = TransportConfig::default();
            transport.stream_receive_window(PART_BYTES_OF_ALL.into());
            let config = client_with(client_config(), transport);
            let client = Client::connect(server.address, config).await.unwrap();
            let head = Request::get(uri("/")).body(()).unwrap();
            let _stream = client.begin(head).await.unwrap();
            let (mut before, mut longest) = (0, 0);
            for _ in 0..TURNS {
                yield_now().await;
                let now = given.load(Ordering::Relaxed);
                longest = longest.max(now - before);
                before = now;
            }
            assert!(before > 0, "no response began");
            assert!(longest <= TURN_BYTES_MAX, "{part_bytes}: {longest}");
        }
    })
    .await;
}

/// The window of a client's stream that may be filled at once.
const PART_BYTES_OF_ALL: u32 = 4 * 1_024 * 1_024;
/// Turns of the loop, of which some dozens are needed to fill it.
const TURNS: usize = 1_000;

#[tokio::test]
async fn a_request_that_the_client_cancels_is_dropped_at_once() {
    within(async {
        let (told, mut dropped) = mpsc::unbounded_channel();
        let server = Rig::start(app(move |request: Request<_>| {
            let dropped = Dropped(told.clone());
            async move {
                if request.uri().path() == "/never" {
                    let _dropped = dropped;
                    std::future::pending::<()>().await;
                }
                Ok(text("still"))
            }
        }));
        let client = server.connect().await;
        let head = Request::get(uri("/never")).body(()).unwrap();
        let mut stream = client.begin(head).await.unwrap();
        stream.finish().await.unwrap();
        assert_eq!(client.get("/").await.1, "still");
        dropped.recv().await.unwrap();
        stream.stop_sending(Code::H3_REQUEST_CANCELLED);
        dropped.recv().await.unwrap();
        assert_eq!(client.get("/").await.1, "still");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn all_streams_that_may_be_open_may_be_cancelled_at_once() {
    local(async {
        let limits = Limits {
            streams_max: 200,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let client = server.connect().await;
        let mut streams = Vec::new();
        for _ in 0..190 {
            let head = Request::get(uri("/never")).body(()).unwrap();
            let mut stream = client.begin(head).await.unwrap();
            stream.finish().await.unwrap();
            streams.push(stream);
        }
        assert_eq!(client.get("/before").await.1, "/before");
        for stream in &mut streams {
            stream.stop_sending(Code::H3_REQUEST_CANCELLED);
        }
        sleep(SECOND).await;
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test]
async fn a_body_that_fails_resets_its_stream() {
    within(async {
        let server = Rig::start(app(|_| async {
            let parts = [
                Ok(http_body::Frame::data(Bytes::from("half"))),
                Err("it broke".into()),
            ];
            Ok(streamed(stream::iter(parts)))
        }));
        let client = server.connect().await;
        let request = Request::get(uri("/")).body(Bytes::new()).unwrap();
        let error = client
            .try_ask(request)
            .await
            .err()
            .expect("it is no whole response");
        let code = Code::H3_INTERNAL_ERROR.to_string();
        assert!(error.to_string().contains(&code), "{error}");
    })
    .await;
}

#[tokio::test]
async fn what_comes_on_streams_that_nobody_reads_is_dropped() {
    within(async {
        let server = Rig::start(app(handler));
        let endpoint = endpoint();
        let connecting = endpoint.connect_with(client(), server.address, NAME);
        let connection = connecting.unwrap().await.unwrap();
        let mut control = connection.open_uni().await.unwrap();
        control.write_all(&[0, 4, 0]).await.unwrap();
        // Of QPACK's encoder, which has nothing to say, and of a kind that nobody knows.
        for kind in [2, 0x21] {
            let mut stream = connection.open_uni().await.unwrap();
            stream.write_all(&[kind]).await.unwrap();
            // More than the window of all streams together.
            for _ in 0..80 {
                stream.write_all(&vec![7; PART_BYTES]).await.unwrap();
            }
        }
        assert!(connection.close_reason().is_none());
    })
    .await;
}
