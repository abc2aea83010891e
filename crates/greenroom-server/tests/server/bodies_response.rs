//! Bodies of responses: produced as the client reads, framed by the server, aborted when they fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use greenroom_server::{BoxError, Limits, RequestBody};
use http::{HeaderMap, HeaderValue, Request};
use http_body::Frame;
use hyper::ext::ReasonPhrase;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::client::{Client, get};
use crate::rig::{Rig, app, local, settle, streamed, text};

type Part = Result<Frame<Bytes>, BoxError>;

fn data(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

/// A server that responds to every request with these parts, and these fields.
fn responding(parts: fn() -> Vec<Part>, fields: &'static [(&'static str, &'static str)]) -> Rig {
    Rig::start(app(move |_| async move {
        let mut response = streamed(stream::iter(parts()));
        for (name, value) in fields {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(*name, value);
        }
        Ok(response)
    }))
}

#[tokio::test(start_paused = true)]
async fn a_body_is_produced_only_as_fast_as_the_client_reads() {
    local(async {
        const PART: usize = 10_000;
        const PARTS: usize = 2_000;
        let made = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&made);
        let limits = Limits {
            write_timeout: Duration::from_hours(1),
            ..Limits::default()
        };
        let producer = app(move |_| {
            let made = Arc::clone(&made);
            let parts = (0..PARTS).map(move |_| {
                made.fetch_add(1, Ordering::Relaxed);
                Ok(Frame::data(Bytes::from(vec![b'p'; PART])))
            });
            async { Ok(streamed(stream::iter(parts))) }
        });
        let server = Rig::with(producer, |builder| builder.limits(limits));
        let mut client = server.connect().await;
        client.send(get("/")).await;
        sleep(Duration::from_secs(10)).await;
        let ahead = seen.load(Ordering::Relaxed);
        assert!(ahead * PART < 1_000_000, "{ahead} parts that nobody read");
        client.read_exactly(5_000_000).await;
        sleep(Duration::from_secs(10)).await;
        let ahead = seen.load(Ordering::Relaxed) * PART;
        assert!((5_000_000..6_500_000).contains(&ahead), "{ahead}");
        drop(client);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_of_unknown_length_is_chunked() {
    local(async {
        let server = responding(|| vec![Ok(data("one")), Ok(data("")), Ok(data("two"))], &[]);
        let mut client = server.connect().await;
        for _ in 0..2 {
            let response = client.get("/").await;
            assert_eq!(response.field("transfer-encoding"), Some("chunked"));
            assert_eq!(response.text(), "onetwo");
        }
    })
    .await;
}

/// A server that responds to one request with the parts that it is then sent.
fn responding_as_told() -> (Rig, mpsc::UnboundedSender<Bytes>) {
    let (tell, told) = mpsc::unbounded_channel();
    let told = Arc::new(Mutex::new(Some(told)));
    let server = Rig::start(app(move |_| {
        let mut told = told.lock().unwrap().take().expect("one request");
        let parts = stream::poll_fn(move |cx| told.poll_recv(cx));
        async { Ok(streamed(parts.map(|part| Ok(Frame::data(part))))) }
    }));
    (server, tell)
}

/// Of these lengths the first two are copied to what else is to be sent, the others are not.
const LENGTHS: [usize; 4] = [5, 16 * 1_024, 16 * 1_024 + 1, 100_000];

#[tokio::test(start_paused = true)]
async fn a_part_arrives_as_a_whole_chunk_while_the_handler_waits_for_the_next() {
    local(async {
        let (server, tell) = responding_as_told();
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert_eq!(client.head().await.0, 200);
        for length in LENGTHS {
            let part = vec![b'p'; length];
            tell.send(part.clone().into()).unwrap();
            let size = format!("{length:x}\r\n");
            let chunk = [size.as_bytes(), &part, b"\r\n"].concat();
            assert!(client.read_exactly(chunk.len()).await == chunk);
        }
        drop(tell);
        assert_eq!(client.read_exactly(5).await, b"0\r\n\r\n");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn chunks_are_whole_however_little_the_client_takes_at_once() {
    local(async {
        let (server, tell) = responding_as_told();
        let mut client = server.connect().await;
        client.send(get("/")).await;
        let parts: Vec<_> = (0..=255_u8)
            .map(|number| vec![number; 10_000 + 101 * usize::from(number)])
            .collect();
        for part in &parts {
            tell.send(part.clone().into()).unwrap();
        }
        drop(tell);
        settle().await;
        assert!(client.response().await.body == parts.concat());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn http_1_0_gets_a_body_of_unknown_length_up_to_the_end_of_the_connection() {
    local(async {
        let server = responding(|| vec![Ok(data("one")), Ok(data("two"))], &[]);
        let mut client = server.connect().await;
        client
            .send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            .await;
        let response = client.response().await;
        assert_eq!(response.field("transfer-encoding"), None);
        assert_eq!((response.text(), response.closes()), ("onetwo", true));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_longer_than_its_content_length_is_cut_there() {
    local(async {
        let parts = || vec![Ok(data("1234")), Ok(data("5678"))];
        let server = responding(parts, &[("content-length", "5")]);
        let mut client = server.connect().await;
        assert_eq!(client.get("/").await.text(), "12345");
        assert_eq!(client.get("/").await.text(), "12345");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_shorter_than_its_content_length_ends_the_connection() {
    local(async {
        let server = responding(|| vec![Ok(data("1234"))], &[("content-length", "5")]);
        let mut client = server.connect().await;
        client.send(get("/") + &get("/")).await;
        assert!(client.head().await.1.contains("Content-Length: 5\r\n"));
        assert_eq!(client.rest().await, b"1234");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_is_aborted_before_its_last_chunk() {
    local(async {
        let server = responding(
            || vec![Ok(data("begun")), Err("the disk is gone".into())],
            &[],
        );
        let mut client = server.connect().await;
        client.send(get("/")).await;
        assert_eq!(client.head().await.0, 200);
        let rest = String::from_utf8(client.rest().await).unwrap();
        assert!(rest.starts_with("5\r\nbegun"), "{rest:?}");
        assert!(!rest.contains("\r\n0\r\n"), "{rest:?}");
    })
    .await;
}

fn with_trailers() -> Vec<Part> {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("17"));
    vec![Ok(data("body")), Ok(Frame::trailers(trailers))]
}

#[tokio::test(start_paused = true)]
async fn trailers_go_to_a_client_that_takes_them() {
    local(async {
        let server = responding(with_trailers, &[]);
        let mut client = server.connect().await;
        client
            .send("GET / HTTP/1.1\r\nHost: test\r\nTE: trailers\r\nConnection: TE\r\n\r\n")
            .await;
        let response = client.response().await;
        assert_eq!(response.text(), "body");
        assert_eq!(response.trailers.to_lowercase(), "x-sum: 17\r\n");
        let response = client.get("/").await;
        assert_eq!((response.text(), response.trailers.as_str()), ("body", ""));
    })
    .await;
}

async fn head(client: &mut Client) -> String {
    client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n").await;
    let (status, head) = client.head().await;
    assert_eq!(status, 200);
    head
}

#[tokio::test(start_paused = true)]
async fn head_gets_the_length_of_a_get_and_no_body() {
    local(async {
        let server = Rig::start(app(|_| async { Ok(text("twelve bytes")) }));
        let mut client = server.connect().await;
        assert!(head(&mut client).await.contains("Content-Length: 12\r\n"));
        assert!(head(&mut client).await.contains("Content-Length: 12\r\n"));
        assert_eq!(client.get("/").await.text(), "twelve bytes");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn head_does_not_run_the_producer_of_a_body() {
    local(async {
        let server = Rig::start(app(|_| async {
            let parts = stream::poll_fn(|_| panic!("nobody wants this body"));
            Ok(streamed(parts))
        }));
        let mut client = server.connect().await;
        head(&mut client).await;
        head(&mut client).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_content_has_no_body() {
    local(async {
        let server = Rig::start(app(|_| async {
            let mut response = text("must not be sent");
            *response.status_mut() = http::StatusCode::NO_CONTENT;
            Ok(response)
        }));
        let mut client = server.connect().await;
        for _ in 0..2 {
            let response = client.get("/").await;
            assert_eq!(
                (response.status, response.field("content-length")),
                (204, None)
            );
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_modified_has_no_length_but_one_that_the_handler_knows() {
    local(async {
        let server = Rig::start(app(|request: Request<RequestBody>| async move {
            let mut response = text("");
            *response.status_mut() = http::StatusCode::NOT_MODIFIED;
            let said = HeaderValue::from_str(&request.uri().path()[1..])?;
            response.headers_mut().insert("content-length", said);
            Ok(response)
        }));
        let mut client = server.connect().await;
        for (path, length) in [("/0", None), ("/42", Some("42")), ("/0", None)] {
            let response = client.get(path).await;
            assert_eq!(
                (response.status, response.field("content-length")),
                (304, length)
            );
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reason_phrase_of_hypers_is_sent() {
    local(async {
        let server = Rig::start(app(|_| async {
            let mut response = text("");
            let reason = ReasonPhrase::from_static(b"Awesome");
            response.extensions_mut().insert(reason);
            Ok(response)
        }));
        let mut client = server.connect().await;
        let upgrade = "Connection: upgrade\r\nUpgrade: unheard-of\r\n";
        for fields in ["", upgrade] {
            client
                .send(format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n"))
                .await;
            let head = client.response().await.head;
            assert!(head.starts_with("HTTP/1.1 200 Awesome\r\n"), "{head}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_long_body_arrives_whole() {
    local(async {
        let long: Vec<u8> = (0..=u8::MAX).cycle().step_by(7).take(20_000_000).collect();
        let body = Bytes::from(long);
        let sent = body.clone();
        let server = Rig::start(app(move |_| {
            let body = body.clone();
            async { Ok(text(body)) }
        }));
        let mut client = server.connect().await;
        client.send(get("/") + &get("/")).await;
        assert!(client.response().await.body == sent);
        assert!(client.response().await.body == sent);
    })
    .await;
}
