//! Bodies in both directions: as they come, with back-pressure, with trailers, and aborted.

use std::sync::Arc;

use axum::Router;
use axum::routing::post;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

use crate::rig::{Rig, body_of, get, read_to, rest, send, status_of, until, within};
use crate::upstreams::{Scripted, count, head, serve, start_echo};

#[tokio::test]
async fn large_bodies_go_both_ways() {
    within(async {
        let counting = Router::new().route("/", post(count));
        let rig = Rig::before([serve(counting).await]);
        for bytes in [1, 65_536, 65_537, 20_000_000] {
            let response = rig.exchange(send("POST", "/", &"x".repeat(bytes))).await;
            assert_eq!(body_of(&response), bytes.to_string());
        }
        rig.end().await;
        let rig = Rig::before([start_echo().await]);
        let body = "y".repeat(3_000_000);
        let response = rig.exchange(send("PUT", "/", &body)).await;
        let echoed = response.bytes().filter(|byte| *byte == b'y').count();
        assert!(echoed >= body.len(), "{echoed}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn parts_are_passed_on_as_they_come() {
    within(async {
        let go_on = Arc::new(Notify::new());
        let told = Arc::clone(&go_on);
        let upstream = Scripted::start(move |_, mut stream| {
            let told = Arc::clone(&told);
            async move {
                head(&mut stream).await;
                let first = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n";
                stream.write_all(first).await.unwrap();
                told.notified().await;
                stream.write_all(b"4\r\nlast\r\n0\r\n\r\n").await.unwrap();
            }
        })
        .await;
        let rig = Rig::before([upstream.address]);
        let mut stream = rig.connect().await;
        stream.write_all(get("/", "").as_bytes()).await.unwrap();
        read_to(&mut stream, "first\r\n").await;
        go_on.notify_one();
        assert_eq!(rest(&mut stream).await, "4\r\nlast\r\n0\r\n\r\n");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_the_upstream() {
    within(async {
        let (sent, mut progress) = mpsc::unbounded_channel();
        let upstream = Scripted::start(move |_, mut stream| {
            let sent = sent.clone();
            async move {
                head(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let part = vec![b'x'; 1_048_576];
                for _ in 0..100 {
                    if stream.write_all(&part).await.is_err() {
                        return;
                    }
                    sent.send(()).unwrap();
                }
                sent.send(()).unwrap();
            }
        })
        .await;
        let rig = Rig::before([upstream.address]);
        let mut stream = rig.connect().await;
        stream.write_all(get("/", "").as_bytes()).await.unwrap();
        read_to(&mut stream, "\r\n\r\n").await;
        // The buffers of four sockets and a few parts: far from all of it.
        let mut parts = 0;
        let pause = std::time::Duration::from_millis(500);
        while tokio::time::timeout(pause, progress.recv()).await.is_ok() {
            parts += 1;
        }
        assert!(parts < 60, "{parts} MiB were read ahead of the client");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        // Of a body without a length the frames are chunks.
        assert!(bytes.len() >= 100 * 1_048_576, "{}", bytes.len());
        assert!(bytes.ends_with(b"x\r\n0\r\n\r\n"));
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn trailers_of_a_request_and_a_response_pass() {
    within(async {
        let upstream = Scripted::start(|_, mut stream| async move {
            let asked = head(&mut stream).await.unwrap();
            assert!(asked.contains("trailer: x-sum"), "{asked}");
            let body = read_to(&mut stream, "\r\n\r\n").await;
            assert_eq!(body, "3\r\nabc\r\n0\r\nx-sum: 6\r\n\r\n");
            let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-end\r\n\
                             \r\n3\r\nabc\r\n0\r\nx-end: 7\r\n\r\n";
            stream.write_all(response).await.unwrap();
        })
        .await;
        let rig = Rig::before([upstream.address]);
        let asked = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTE: trailers\r\n\
                     Trailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n\
                     3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n";
        let response = rig.exchange(asked).await.to_ascii_lowercase();
        assert_eq!(status_of(&response), 200);
        assert!(response.ends_with("0\r\nx-end: 7\r\n\r\n"), "{response}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_response_that_its_upstream_cuts_off_never_looks_whole() {
    within(async {
        for head in [
            "Content-Length: 10\r\n\r\nhalf",
            "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
            "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
        ] {
            let response = format!("HTTP/1.1 200 OK\r\n{head}").leak();
            let upstream = Scripted::responds_once(response).await;
            let rig = Rig::before([upstream.address]);
            let response = rig.get("/", "").await;
            assert!(response.contains("half"), "{response}");
            assert!(!response.ends_with("0\r\n\r\n"), "{response}");
            let is_short = response.to_ascii_lowercase().contains("content-length: 10");
            assert!(is_short || response.contains("4\r\nhalf"), "{response}");
            until(|| rig.upstream(0).failures.response_body == 1).await;
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_request_at_the_upstream() {
    within(async {
        let (came, mut asked) = mpsc::unbounded_channel();
        let upstream = Scripted::start(move |number, mut stream| {
            let came = came.clone();
            async move {
                head(&mut stream).await;
                if number == 1 {
                    let part = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart";
                    stream.write_all(part).await.unwrap();
                }
                came.send("asked").unwrap();
                let _closed = stream.read_to_end(&mut Vec::new()).await;
                came.send("closed").unwrap();
            }
        })
        .await;
        let rig = Rig::before([upstream.address]);
        // Before the response, and within it.
        for _ in 0..2 {
            let mut stream = rig.connect().await;
            stream.write_all(get("/", "").as_bytes()).await.unwrap();
            assert_eq!(asked.recv().await, Some("asked"));
            drop(stream);
            assert_eq!(asked.recv().await, Some("closed"));
        }
        until(|| rig.upstream(0).in_flight == 0).await;
        assert_eq!(rig.upstream(0).failures.total(), 0);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_within_its_body_is_no_fault_of_the_upstream() {
    within(async {
        let (came, mut ended) = mpsc::unbounded_channel();
        let upstream = Scripted::start(move |_, mut stream| {
            let came = came.clone();
            async move {
                head(&mut stream).await;
                let mut body = Vec::new();
                let _closed = stream.read_to_end(&mut body).await;
                came.send(String::from_utf8(body).unwrap()).unwrap();
            }
        })
        .await;
        let rig = Rig::before([upstream.address]);
        let mut stream = rig.connect().await;
        let asked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
        stream.write_all(asked.as_bytes()).await.unwrap();
        until(|| rig.upstream(0).in_flight == 1).await;
        drop(stream);
        // Its end does not look like the body's.
        let body = ended.recv().await.unwrap();
        assert!(!body.contains("0\r\n"), "{body}");
        until(|| rig.upstream(0).in_flight == 0).await;
        assert_eq!(rig.upstream(0).failures.total(), 0);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_body_beyond_the_servers_limit_is_refused_by_the_proxy() {
    within(async {
        let counting = Router::new().route("/", post(count));
        let rig = Rig::before([serve(counting).await]);
        let mut stream = rig.connect().await;
        let asked = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                     Content-Length: 1000000000\r\n\r\n";
        stream.write_all(asked.as_bytes()).await.unwrap();
        assert_eq!(status_of(&rest(&mut stream).await), 413);
        assert_eq!(rig.upstream(0).failures.total(), 0);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_response_that_comes_before_the_bodys_end_is_passed_on() {
    within(async {
        let (came, mut ended) = mpsc::unbounded_channel();
        let upstream = Scripted::start(move |_, mut stream| {
            let came = came.clone();
            async move {
                head(&mut stream).await;
                let early = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
                stream.write_all(early).await.unwrap();
                // The rest of the body may come, or not; then the connection ends.
                let _closed = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                came.send(()).unwrap();
            }
        })
        .await;
        let rig = Rig::before([upstream.address]);
        let response = rig
            .exchange(send("POST", "/", &"x".repeat(30_000_000)))
            .await;
        assert_eq!((status_of(&response), body_of(&response)), (403, "no"));
        until(|| rig.upstream(0).in_flight == 0).await;
        assert_eq!(rig.upstream(0).failures.total(), 0);
        rig.end().await;
        ended.recv().await.unwrap();
    })
    .await;
}
