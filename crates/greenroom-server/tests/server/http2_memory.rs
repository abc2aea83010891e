//! The memory of HTTP/2 connections counts as that of all others, up to the same limit.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use greenroom_server::{Limits, RequestBody};
use http::Request;
use http_body_util::BodyExt;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::http2_frames::{DATA, END_HEADERS, END_STREAM, Frames, HEADERS, packed};
use crate::rig::{Reply, Rig, app, local, measure, text};

const KIB: usize = 1_024;
const SECOND: Duration = Duration::from_secs(1);

async fn handler(request: Request<RequestBody>) -> Reply {
    match request.uri().path() {
        "/never" => std::future::pending().await,
        "/whole" => Ok(text(vec![b'w'; 200 * KIB])),
        "/measure" => measure(request).await,
        // Takes what has come by then, and waits for the rest.
        "/later" => {
            sleep(60 * SECOND).await;
            measure(request).await
        }
        "/first" => {
            let mut body = request.into_body();
            let first = body.frame().await;
            drop(body);
            Ok(text(first.is_some().to_string()))
        }
        _ => Ok(text("ok")),
    }
}

fn of(memory_max: usize) -> Rig {
    let limits = Limits {
        memory_max,
        ..Limits::default()
    };
    Rig::with(app(handler), |builder| builder.limits(limits))
}

fn fields(path: &str) -> Vec<(&str, &str)> {
    vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", path),
    ]
}

/// A client of which a body is under way on its stream 3, of so many KiB so far.
async fn uploading(server: &Rig, path: &str, kibibytes: usize) -> Frames {
    let mut client = Frames::with_window(&server.path, 65_535).await;
    // The windows of the server hold when its settings are acknowledged.
    client.get(1, "/").await;
    client.response(1).await;
    let head = packed(&fields(path));
    client.send(HEADERS, END_HEADERS, 3, &head).await;
    for _ in 0..kibibytes {
        client.send(DATA, 0, 3, &[b'b'; KIB]).await;
    }
    sleep(SECOND).await;
    client
}

async fn status_over_http1(server: &Rig) -> u16 {
    server.connect().await.get("/").await.status
}

async fn status_over_http2(server: &Rig) -> (u16, String) {
    let mut client = Frames::with_window(&server.path, 65_535).await;
    client.get(1, "/").await;
    client.response(1).await
}

/// A new client is declined while `begun` holds the memory, and served when it has gone.
async fn assert_full_until_gone<T>(server: &Rig, begun: T) {
    assert_eq!(status_over_http1(server).await, 503);
    let (status, said) = status_over_http2(server).await;
    assert_eq!((status, said.as_str()), (503, "too much is under way\n"));
    drop(begun);
    sleep(SECOND).await;
    assert_eq!(status_over_http1(server).await, 200);
    assert_eq!(status_over_http2(server).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_nobody_takes_count() {
    local(async {
        let server = of(100 * KIB);
        let first = uploading(&server, "/never", 60).await;
        assert_eq!(status_over_http2(&server).await.0, 200);
        let second = uploading(&server, "/never", 60).await;
        assert_full_until_gone(&server, second).await;
        drop(first);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn heads_without_a_response_count_and_so_do_those_that_do_not_end() {
    local(async {
        let long = "x".repeat(50 * KIB);
        let mut fields = fields("/never");
        fields.push(("x", &long));
        let head = packed(&fields);
        let (begin, rest) = head.split_at(16 * KIB);

        let server = of(40 * KIB);
        let mut waiting = Frames::with_window(&server.path, 65_535).await;
        waiting.send_head(1, END_STREAM, &head).await;
        sleep(SECOND).await;
        // One that is only half there is not waited for either.
        let mut other = Frames::with_window(&server.path, 65_535).await;
        other.send(HEADERS, END_STREAM, 1, b"").await;
        other.continuation(1, begin).await;
        other.rest().await;
        assert_full_until_gone(&server, waiting).await;

        let mut unfinished = Frames::with_window(&server.path, 65_535).await;
        unfinished.send(HEADERS, END_STREAM, 1, begin).await;
        for part in rest.chunks(16 * KIB) {
            unfinished.continuation(1, part).await;
        }
        sleep(SECOND).await;
        assert_full_until_gone(&server, unfinished).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn responses_that_are_not_taken_count() {
    local(async {
        let server = of(16 * KIB);
        let mut client = Frames::with_window(&server.path, 0).await;
        client.get(1, "/whole").await;
        sleep(SECOND).await;
        assert_full_until_gone(&server, client).await;
    })
    .await;
}

/// Nor is anything forgotten or counted twice: 100 KiB at a time, again and again.
#[tokio::test(start_paused = true)]
async fn what_was_taken_or_dropped_counts_no_more() {
    local(async {
        let server = of(64 * KIB);
        let mut client = Frames::with_window(&server.path, 65_535).await;
        for number in 0..40 {
            let id = 2 * number + 1;
            let path = ["/measure", "/first"][number as usize % 2];
            let head = packed(&fields(path));
            client.send(HEADERS, END_HEADERS, id, &head).await;
            for part in 0..25 {
                let end = if part == 24 { END_STREAM } else { 0 };
                client.send(DATA, end, id, &[b'b'; 2 * KIB]).await;
            }
            let said = client.said(id).await;
            assert_eq!(said, ["51200", "true"][number as usize % 2], "{number}");
            sleep(SECOND).await;
        }
        assert_eq!(status_over_http1(&server).await, 200);
    })
    .await;
}

/// The streams of a client that uploads much, each as much as its window lets it.
const UPLOADS: [u32; 4] = [3, 5, 7, 9];

/// Sends 240 KiB on each stream, and adds up what the responses say that they were.
async fn upload_all(mut client: Frames, sent: Rc<Cell<usize>>) -> usize {
    for id in UPLOADS {
        for _ in 0..24 {
            client.send(DATA, 0, id, &[b'b'; 10 * KIB]).await;
            sent.set(sent.get() + 10 * KIB);
        }
        client.send(DATA, END_STREAM, id, &[]).await;
    }
    let mut said: HashMap<u32, String> = HashMap::new();
    let mut ended = 0;
    while ended < UPLOADS.len() {
        let frame = client.next().await.expect("the connection goes on");
        if frame.kind == DATA {
            let text = String::from_utf8(frame.content).unwrap();
            said.entry(frame.id).or_default().push_str(&text);
        }
        ended += usize::from(frame.flags & END_STREAM != 0);
    }
    said.values()
        .map(|length| length.parse::<usize>().unwrap())
        .sum()
}

/// A client may send a MiB before the application takes any. Without memory not all of that is
/// read, until the application makes room.
#[tokio::test(start_paused = true)]
async fn without_memory_little_more_is_read_than_is_taken() {
    local(async {
        let server = of(200 * KIB);
        let mut clients = Vec::new();
        for _ in 0..4 {
            let mut client = uploading(&server, "/later", 10).await;
            for id in &UPLOADS[1..] {
                let head = packed(&fields("/later"));
                client.send(HEADERS, END_HEADERS, *id, &head).await;
            }
            clients.push(client);
        }
        let sent = Rc::new(Cell::new(0));
        let clients = clients.into_iter();
        let clients = clients.map(|client| spawn_local(upload_all(client, Rc::clone(&sent))));
        let clients: Vec<_> = clients.collect();
        sleep(20 * SECOND).await;
        // What the system keeps for each is up to 300 KiB.
        assert!(sent.get() < 2_000 * KIB, "{}", sent.get() / KIB);
        assert_eq!(status_over_http2(&server).await.0, 503);
        for client in clients {
            assert_eq!(client.await.unwrap(), (10 + 4 * 240) * KIB);
        }
        assert_eq!(status_over_http2(&server).await.0, 200);
    })
    .await;
}
