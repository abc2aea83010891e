//! Upstreams that respond badly, late or not at all.

use std::time::Duration;

use greenroom_proxy::{Settings, UpstreamFailures};
use greenroom_server::{RejectionBody, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::log;
use crate::rig::{Rig, body_of, get, nobody, send, status_of, to, within};
use crate::upstreams::{Scripted, head};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn an_upstream_that_nobody_serves_is_502() {
    within(async {
        log::keep();
        let address = nobody();
        let rig = Rig::before([address]);
        for _ in 0..3 {
            let response = rig.get("/", "").await;
            assert_eq!(status_of(&response), 502);
            assert_eq!(body_of(&response), "the upstream could not be reached\n");
        }
        assert_eq!(rig.upstream(0).failures.connect, 3);
        // One warning for all, with what to do.
        let told = log::lines(&address.to_string(), "requests failed at an upstream");
        let line = told.first().expect("a warning");
        assert!(
            line.contains("is it running") && line.contains("count=1"),
            "{line}"
        );
        rig.end().await;
        let missing = Settings::new(["unix:/nonexistent/api.sock".parse().unwrap()]);
        let rig = Rig::with(missing);
        assert_eq!(status_of(&rig.get("/", "").await), 502);
        rig.end().await;
        let nowhere = Settings::new(["http://nowhere.invalid:9".parse().unwrap()]);
        let rig = Rig::with(nowhere);
        assert_eq!(status_of(&rig.exchange(send("POST", "/", "a")).await), 502);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn what_is_no_response_is_502() {
    within(async {
        for response in [
            "",
            "HTTP/1.1 200 OK\r\nContent-Le",
            "SSH-2.0-OpenSSH_9.2\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "HTTP/9.9 200 OK\r\n\r\n",
        ] {
            let upstream = Scripted::responds_once(response).await;
            let rig = Rig::before([upstream.address]);
            let told = rig.get("/", "").await;
            assert_eq!(status_of(&told), 502, "{response}: {told}");
            assert_eq!(rig.upstream(0).failures.response_head, 1, "{response}");
            rig.end().await;
        }
        let long = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "a".repeat(300_000));
        let upstream = Scripted::responds_once(long.leak()).await;
        let rig = Rig::before([upstream.address]);
        assert_eq!(status_of(&rig.get("/", "").await), 502);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_never_responds_is_504() {
    within(async {
        let upstream = Scripted::start(|_, mut stream| async move {
            let _closed = stream.read_to_end(&mut Vec::new()).await;
        })
        .await;
        let settings = Settings {
            response_head_timeout: SHORT,
            ..to([upstream.address])
        };
        let rig = Rig::with(settings);
        for asked in [get("/", ""), send("POST", "/", "body")] {
            let response = rig.exchange(asked).await;
            assert_eq!(status_of(&response), 504);
            assert_eq!(body_of(&response), "the upstream took too long\n");
        }
        assert_eq!(rig.upstream(0).failures.response_head_timeout, 2);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_does_not_take_the_body_is_504() {
    within(async {
        let upstream = Scripted::start(|_, stream| async move {
            let _kept = stream;
            std::future::pending::<()>().await;
        })
        .await;
        let settings = Settings {
            response_head_timeout: SHORT,
            ..to([upstream.address])
        };
        let rig = Rig::with(settings);
        let response = rig
            .exchange(send("POST", "/", &"x".repeat(30_000_000)))
            .await;
        assert_eq!(status_of(&response), 504);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_body_that_pauses_too_long_is_aborted() {
    within(async {
        let upstream = Scripted::start(|_, mut stream| async move {
            head(&mut stream).await;
            let half = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
            stream.write_all(half).await.unwrap();
            let _closed = stream.read_to_end(&mut Vec::new()).await;
        })
        .await;
        let settings = Settings {
            body_idle_timeout: SHORT,
            ..to([upstream.address])
        };
        let rig = Rig::with(settings);
        let response = rig.get("/", "").await;
        assert!(response.ends_with("\r\n\r\nhalf"), "{response}");
        let failures = rig.upstream(0).failures;
        assert_eq!((failures.response_body, failures.total()), (1, 1));
        assert_ne!(failures, UpstreamFailures::default());
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn errors_of_the_proxy_are_rejections_of_the_server() {
    within(async {
        let server = Server::builder().rejection_body(|rejection| {
            let page = format!("{} {}", rejection.status.as_u16(), rejection.detail);
            Some(RejectionBody::new("text/html", page))
        });
        let rig = Rig::behind(server, to([nobody()]));
        let response = rig.get("/", "").await;
        assert_eq!(body_of(&response), "502 the upstream could not be reached");
        rig.end().await;
    })
    .await;
}
