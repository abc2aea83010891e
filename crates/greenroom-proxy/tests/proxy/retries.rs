//! Requests that are sent again, and those that never are (RFC 9110, 9.2.2).

use greenroom_proxy::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{Rig, body_of, get, nobody, read_to, send, status_of, to, until, within};
use crate::upstreams::{Scripted, head, ok, start_echo};

/// Takes the head of each request, and closes the connection.
async fn dies() -> Scripted {
    Scripted::responds_once("").await
}

#[tokio::test]
async fn idempotent_requests_go_to_another_upstream() {
    within(async {
        let (bad, good) = (dies().await, start_echo().await);
        for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
            let rig = Rig::before([bad.address, good]);
            let response = rig.exchange(send(method, "/a", "body")).await;
            assert_eq!(status_of(&response), 200, "{method}");
            if method != "HEAD" {
                assert!(response.contains("\nbody"), "{response}");
            }
            assert_eq!(rig.upstream(0).failures.response_head, 1);
            assert_eq!(rig.upstream(1).retries, 1);
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_may_have_begun_is_not_sent_again() {
    within(async {
        let bad = Scripted::start(|_, mut stream| async move {
            let asked = head(&mut stream).await.unwrap();
            // It dies within the body, if there is one.
            if !asked.contains("content-length: 0") {
                stream.read_u8().await.unwrap();
            }
        });
        let (bad, good) = (bad.await, start_echo().await);
        let long = "x".repeat(65_537);
        for asked in [
            send("POST", "/", "body"),
            send("POST", "/", ""),
            send("PATCH", "/", "body"),
            // Idempotent, but its body was not kept.
            send("PUT", "/", &long),
        ] {
            let rig = Rig::before([bad.address, good]);
            let response = rig.exchange(&asked).await;
            assert_eq!(status_of(&response), 502, "{}", &asked[..20]);
            assert_eq!(rig.upstream(1).requests, 0);
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_was_never_sent_goes_to_another_upstream_whatever_it_is() {
    within(async {
        let good = start_echo().await;
        for body in ["", "body", &"x".repeat(200_000)] {
            let rig = Rig::before([nobody(), good]);
            let response = rig.exchange(send("POST", "/", body)).await;
            assert_eq!(status_of(&response), 200);
            assert!(response.contains("POST /"), "{response}");
            assert_eq!(rig.upstream(0).failures.connect, 1);
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_response_that_has_begun_is_the_response() {
    within(async {
        let half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
        let (bad, good) = (Scripted::responds_once(half).await, start_echo().await);
        let rig = Rig::before([bad.address, good]);
        let response = rig.get("/", "").await;
        assert!(response.ends_with("\r\n\r\nhalf"), "{response}");
        assert_eq!(rig.upstream(1).requests, 0);
        rig.end().await;
        // A failure that the application tells itself is its response, too.
        let sad = "HTTP/1.1 503 Sad\r\nContent-Length: 0\r\n\r\n";
        let bad = Scripted::responds_once(sad).await;
        let rig = Rig::before([bad.address, good]);
        assert_eq!(status_of(&rig.get("/", "").await), 503);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn tries_have_an_end() {
    within(async {
        let bad = [dies().await, dies().await, dies().await];
        let addresses = [bad[0].address, bad[1].address, bad[2].address];
        for (tries_max, expected) in [(1, 1), (2, 2), (5, 3)] {
            let settings = Settings {
                tries_max,
                ..to(addresses)
            };
            let rig = Rig::with(settings);
            assert_eq!(status_of(&rig.get("/", "").await), 502);
            let requests = rig.status().upstreams;
            let requests: u64 = requests.iter().map(|upstream| upstream.requests).sum();
            assert_eq!(requests, expected);
            rig.end().await;
        }
    })
    .await;
}

/// Responds to the first request of its first connection, and closes that as the second comes.
async fn closes_on_reuse() -> Scripted {
    Scripted::start(|number, mut stream| async move {
        while let Some(asked) = head(&mut stream).await {
            if asked.contains("content-length: 4") {
                read_to(&mut stream, "body").await;
            }
            if number == 0 && asked.contains("/second") {
                return;
            }
            stream.write_all(ok("fine").as_bytes()).await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn an_idle_connection_that_dies_on_reuse_costs_an_idempotent_request_nothing() {
    within(async {
        let upstream = closes_on_reuse().await;
        let mut stream = None;
        let rig = Rig::before([upstream.address]);
        // On one connection of the client's, so on one loop and one connection of the proxy's.
        let stream = stream.get_or_insert(rig.connect().await);
        for path in ["/first", "/second", "/third"] {
            let asked = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            stream.write_all(asked.as_bytes()).await.unwrap();
            let response = read_to(stream, "\r\n\r\nfine").await;
            assert_eq!(status_of(&response), 200);
        }
        assert_eq!(upstream.connections(), 2);
        let status = rig.upstream(0);
        assert_eq!((status.failures.total(), status.retries), (0, 1));
        rig.end().await;
    })
    .await;
}

/// The kept connection and a new one of the upstream that is gone are two; the other is the third.
#[tokio::test]
async fn a_dying_connection_takes_no_try_away() {
    within(async {
        let gone = Scripted::start(|number, mut stream| async move {
            while let Some(asked) = head(&mut stream).await {
                if number > 0 || asked.contains("/second") {
                    return;
                }
                stream.write_all(ok("gone").as_bytes()).await.unwrap();
            }
        });
        let other = Scripted::start(|_, mut stream| async move {
            while let Some(asked) = head(&mut stream).await {
                if asked.contains("/held") {
                    std::future::pending::<()>().await;
                }
                stream.write_all(ok("other").as_bytes()).await.unwrap();
            }
        });
        let (gone, other) = (gone.await, other.await);
        let rig = Rig::before([gone.address, other.address]);
        let ask = |path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut stream = rig.connect().await;
        stream.write_all(ask("/first").as_bytes()).await.unwrap();
        read_to(&mut stream, "\r\n\r\ngone").await;
        // So that the one that is gone has the fewest requests, again and again.
        let mut held = rig.connect().await;
        held.write_all(ask("/held").as_bytes()).await.unwrap();
        until(|| rig.upstream(1).in_flight == 1).await;
        stream.write_all(ask("/second").as_bytes()).await.unwrap();
        read_to(&mut stream, "\r\n\r\nother").await;
        assert_eq!(rig.upstream(0).failures.response_head, 1);
        drop(held);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_post_on_a_connection_that_dies_on_reuse_is_502() {
    within(async {
        let upstream = closes_on_reuse().await;
        let rig = Rig::before([upstream.address]);
        let mut stream = rig.connect().await;
        let first = "GET /first HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(first.as_bytes()).await.unwrap();
        read_to(&mut stream, "\r\n\r\nfine").await;
        stream
            .write_all(send("POST", "/second", "body").as_bytes())
            .await
            .unwrap();
        let response = crate::rig::rest(&mut stream).await;
        assert_eq!(status_of(&response), 502);
        assert_eq!(upstream.connections(), 1);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn connections_are_kept_and_used_again() {
    within(async {
        let upstream = Scripted::responds("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine").await;
        let rig = Rig::before([upstream.address]);
        let mut stream = rig.connect().await;
        for _ in 0..50 {
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .await
                .unwrap();
            read_to(&mut stream, "\r\n\r\nfine").await;
        }
        assert_eq!(upstream.connections(), 1);
        rig.end().await;
        let settings = Settings {
            idle_max: 0,
            ..to([upstream.address])
        };
        let rig = Rig::with(settings);
        for _ in 0..3 {
            assert_eq!(body_of(&rig.get("/", "").await), "fine");
        }
        until(|| upstream.connections() == 4).await;
        rig.end().await;
    })
    .await;
}

/// So that requests follow a name whose addresses change, though no connection is ever idle.
#[tokio::test]
async fn a_connection_of_the_greatest_age_gets_no_further_request() {
    within(async {
        let age_max = std::time::Duration::from_millis(1);
        let (came, mut closed) = tokio::sync::mpsc::unbounded_channel();
        let upstream = Scripted::start(move |number, mut stream| {
            let came = came.clone();
            async move {
                while let Some(_head) = head(&mut stream).await {
                    // The connection is older than that by the time of its first response.
                    tokio::time::sleep(age_max).await;
                    let body = format!("connection {number}");
                    stream.write_all(ok(&body).as_bytes()).await.unwrap();
                }
                came.send(number).unwrap();
            }
        })
        .await;
        let settings = Settings {
            connection_age_max: age_max,
            ..to([upstream.address])
        };
        let rig = Rig::with(settings);
        // On one connection of the client's, so on one loop.
        let mut stream = rig.connect().await;
        for number in 0..3 {
            let asked = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
            stream.write_all(asked).await.unwrap();
            let body = format!("\r\n\r\nconnection {number}");
            read_to(&mut stream, &body).await;
        }
        let mut gone = [closed.recv().await, closed.recv().await];
        gone.sort_unstable();
        assert_eq!(gone, [Some(0), Some(1)]);
        assert_eq!(rig.upstream(0).failures.total(), 0);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_the_upstream_closes_is_not_used_again() {
    within(async {
        let close = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfine";
        let old = "HTTP/1.0 200 OK\r\n\r\nfine";
        for response in [close, old] {
            let upstream = Scripted::responds_once(response).await;
            let rig = Rig::before([upstream.address]);
            for _ in 0..3 {
                let response = rig.exchange(get("/", "")).await;
                assert!(body_of(&response).contains("fine"), "{response}");
            }
            assert_eq!(rig.upstream(0).failures.total(), 0);
            rig.end().await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    within(async {
        let (came, mut closed) = tokio::sync::mpsc::unbounded_channel();
        let upstream = Scripted::start(move |_, mut stream| {
            let came = came.clone();
            async move {
                head(&mut stream).await;
                stream.write_all(ok("fine").as_bytes()).await.unwrap();
                came.send(stream.read(&mut [0]).await.unwrap()).unwrap();
            }
        })
        .await;
        let settings = Settings {
            idle_timeout: std::time::Duration::from_millis(50),
            ..to([upstream.address])
        };
        let rig = Rig::with(settings);
        assert_eq!(body_of(&rig.get("/", "").await), "fine");
        assert_eq!(closed.recv().await, Some(0));
        rig.end().await;
    })
    .await;
}
