//! `Expect: 100-continue`, and informational responses (RFC 9110, 10.1.1 and 15.2).

use std::time::Duration;

use axum::body::Body;
use greenroom_proxy::{Proxy, Settings};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::rig::{Rig, body_of, get, read_to, rest, status_of, within};
use crate::upstreams::{Scripted, head, ok};

const ASKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\
                     Expect: 100-continue\r\n\r\n";

#[tokio::test]
async fn the_upstream_decides_whether_the_body_is_wanted() {
    within(async {
        let upstream = Scripted::start(|number, mut stream| async move {
            let asked = head(&mut stream).await.unwrap();
            assert!(asked.contains("expect: 100-continue"), "{asked}");
            if number == 1 {
                let refused = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nwho?";
                stream.write_all(refused).await.unwrap();
                // The connection ends without the body, which nobody asked for.
                assert_eq!(rest(&mut stream).await, "");
                return;
            }
            stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await
                .unwrap();
            let body = read_to(&mut stream, "body").await;
            stream.write_all(ok(&body).as_bytes()).await.unwrap();
        })
        .await;
        let rig = Rig::before([upstream.address]);
        let mut stream = rig.connect().await;
        stream.write_all(ASKED.as_bytes()).await.unwrap();
        assert!(
            read_to(&mut stream, "\r\n\r\n")
                .await
                .starts_with("HTTP/1.1 100")
        );
        stream.write_all(b"body").await.unwrap();
        assert_eq!(body_of(&rest(&mut stream).await), "body");
        // The second is refused, and its client never sends the body.
        let mut stream = rig.connect().await;
        stream.write_all(ASKED.as_bytes()).await.unwrap();
        let response = read_to(&mut stream, "who?").await;
        assert_eq!(status_of(&response), 401);
        drop(stream);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_ignores_the_expectation_gets_the_body() {
    within(async {
        let upstream = Scripted::start(|_, mut stream| async move {
            head(&mut stream).await.unwrap();
            let body = read_to(&mut stream, "body").await;
            stream.write_all(ok(&body).as_bytes()).await.unwrap();
        })
        .await;
        let rig = Rig::before([upstream.address]);
        let response = rig.exchange(format!("{ASKED}body")).await;
        assert!(response.ends_with("\r\n\r\nbody"), "{response}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn informational_responses_pass() {
    within(async {
        let upstream = Scripted::responds(
            "HTTP/1.1 100 Continue\r\n\r\n\
             HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n\
             HTTP/1.1 102 Processing\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone",
        )
        .await;
        let rig = Rig::before([upstream.address]);
        let response = rig.get("/", "").await;
        let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";
        let lower = response.to_ascii_lowercase();
        assert!(lower.starts_with(&hints.to_ascii_lowercase()), "{response}");
        assert!(response.ends_with("\r\n\r\ndone"), "{response}");
        // Clients of HTTP/1.0 know none.
        let old = rig
            .exchange(get("/", "").replace("HTTP/1.1", "HTTP/1.0"))
            .await;
        assert_eq!(status_of(&old), 200);
        rig.end().await;
    })
    .await;
}

/// Says every 10 s that it is still at work, so many times, and then `last`.
async fn works(listener: UnixListener, times: usize, last: &str) {
    let (mut stream, _) = listener.accept().await.unwrap();
    read_to(&mut stream, "\r\n\r\n").await;
    let statuses = ["102 Processing", "103 Early Hints"].into_iter().cycle();
    for status in statuses.take(times) {
        sleep(Duration::from_secs(10)).await;
        let still = format!("HTTP/1.1 {status}\r\n\r\n");
        stream.write_all(still.as_bytes()).await.unwrap();
    }
    stream.write_all(last.as_bytes()).await.unwrap();
    // It ends no connection.
    std::future::pending::<()>().await;
}

// What is written to a Unix socket can be read at once. So the paused clock, which goes on only
// while nobody has anything to do, waits for the proxy to read it.
#[tokio::test(start_paused = true)]
async fn rfc9110_15_2_an_upstream_that_says_it_is_at_work_has_its_time_anew() {
    within(async {
        let directory = tempfile::tempdir().unwrap();
        for (times, last, status, seconds) in
            [(5, ok("done"), 200, 50), (3, String::new(), 504, 45)]
        {
            let path = directory.path().join(format!("{status}.sock"));
            let listener = UnixListener::bind(&path).unwrap();
            let upstream = format!("unix:{}", path.display());
            let proxy = Proxy::new(Settings {
                response_head_timeout: Duration::from_secs(15),
                ..Settings::new([upstream.parse().unwrap()])
            });
            tokio::spawn(async move { works(listener, times, &last).await });
            let asked = Instant::now();
            let request = http::Request::new(Body::empty());
            let response = proxy.unwrap().oneshot(request).await.unwrap();
            assert_eq!(response.status(), status);
            assert_eq!(asked.elapsed().as_secs(), seconds);
        }
    })
    .await;
}
