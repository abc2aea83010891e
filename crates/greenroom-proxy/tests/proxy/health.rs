//! Upstreams that rest, and come back.

use std::os::unix::net::{UnixListener, UnixStream};
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use greenroom_proxy::{Proxy, Settings, UpstreamState};
use tower::ServiceExt;

use crate::rig::{Rig, get, nobody, send, status_of, to, until, within};
use crate::upstreams::{Scripted, serve, start_echo};

#[tokio::test]
async fn an_upstream_that_fails_rests_and_gets_nothing() {
    within(async {
        let settings = Settings {
            rest_first: Duration::from_hours(1),
            rest_longest: Duration::from_hours(1),
            ..to([nobody(), start_echo().await])
        };
        let rig = Rig::with(settings);
        for _ in 0..60 {
            assert_eq!(status_of(&rig.get("/", "").await), 200);
        }
        let (bad, good) = (rig.upstream(0), rig.upstream(1));
        assert_eq!(
            (bad.state, bad.requests, bad.rests),
            (UpstreamState::Resting, 3, 1)
        );
        assert_eq!((good.state, good.requests), (UpstreamState::Healthy, 60));
        let status = serde_json::to_value(rig.status()).unwrap();
        assert_eq!(status["upstreams"][0]["state"], "resting");
        assert_eq!(status["upstreams"][0]["failures"]["connect"], 3);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_is_back_gets_its_share_again() {
    within(async {
        let gone = nobody();
        let settings = Settings {
            rest_first: Duration::from_millis(20),
            rest_longest: Duration::from_millis(100),
            ..to([gone, start_echo().await])
        };
        let rig = Rig::with(settings);
        while rig.upstream(0).state == UpstreamState::Healthy {
            assert_eq!(status_of(&rig.get("/", "").await), 200);
        }
        let fine = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";
        let _back = Scripted::at(gone, move |_, mut stream| async move {
            while crate::upstreams::head(&mut stream).await.is_some() {
                let written = tokio::io::AsyncWriteExt::write_all(&mut stream, fine.as_bytes());
                if written.await.is_err() {
                    return;
                }
            }
        })
        .await;
        while rig.upstream(0).state == UpstreamState::Resting {
            assert_eq!(status_of(&rig.get("/", "").await), 200);
        }
        let before = rig.upstream(0).requests;
        for _ in 0..10 {
            rig.get("/", "").await;
        }
        assert!(rig.upstream(0).requests > before);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_lone_upstream_is_asked_even_while_it_rests() {
    within(async {
        let gone = nobody();
        let settings = Settings {
            rest_first: Duration::from_hours(1),
            rest_longest: Duration::from_hours(1),
            ..to([gone])
        };
        let rig = Rig::with(settings);
        for _ in 0..5 {
            assert_eq!(status_of(&rig.get("/", "").await), 502);
        }
        assert_eq!(rig.upstream(0).state, UpstreamState::Resting);
        let _back = Scripted::at(gone, |_, mut stream| async move {
            crate::upstreams::head(&mut stream).await;
            let fine = b"HTTP/1.1 204 Fine\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, fine)
                .await
                .unwrap();
        })
        .await;
        assert_eq!(status_of(&rig.get("/", "").await), 204);
        assert_eq!(rig.upstream(0).state, UpstreamState::Healthy);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn statuses_count_as_failures_if_the_settings_say_so() {
    within(async {
        let sad = "HTTP/1.1 503 Sad\r\nContent-Length: 3\r\n\r\nsad";
        let upstream = Scripted::responds(sad).await;
        let settings = Settings {
            failure_statuses: vec![502, 503],
            ..to([upstream.address])
        };
        let rig = Rig::with(settings);
        for _ in 0..4 {
            let response = rig.exchange(send("POST", "/", "")).await;
            assert_eq!(status_of(&response), 503);
            assert!(response.ends_with("\r\n\r\nsad"), "{response}");
        }
        let status = rig.upstream(0);
        assert_eq!((status.failures.status, status.rests), (4, 1));
        assert_eq!(status.state, UpstreamState::Resting);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn requests_go_where_fewest_are_under_way() {
    within(async {
        let slow = axum::Router::new().fallback(std::future::pending::<String>);
        let rig = Rig::before([serve(slow).await, start_echo().await]);
        // The first goes to the slow one, and stays there.
        let mut stream = rig.connect().await;
        let asked = get("/", "");
        tokio::io::AsyncWriteExt::write_all(&mut stream, asked.as_bytes())
            .await
            .unwrap();
        until(|| rig.upstream(0).in_flight == 1).await;
        for _ in 0..10 {
            assert_eq!(status_of(&rig.get("/", "").await), 200);
            until(|| rig.upstream(1).in_flight == 0).await;
        }
        assert_eq!(rig.upstream(0).requests, 1);
        drop(stream);
        until(|| rig.upstream(0).in_flight == 0).await;
        rig.end().await;
    })
    .await;
}

/// Connects until the listener has as many connections as may wait there.
async fn fill(path: &std::path::Path) -> Vec<tokio::net::UnixStream> {
    let mut waiting = Vec::new();
    loop {
        match tokio::net::UnixStream::connect(path).await {
            Ok(stream) => waiting.push(stream),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                return waiting;
            }
        }
    }
}

#[tokio::test]
async fn a_unix_socket_that_has_no_room_just_now_is_waited_for() {
    within(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("up.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let waiting = fill(&path).await;
        let upstream = format!("unix:{}", path.display());
        let proxy = Proxy::new(Settings::new([upstream.parse().unwrap()])).unwrap();
        let request = http::Request::new(axum::body::Body::empty());
        let mut responding = pin!(proxy.clone().oneshot(request));
        assert!(responding.as_mut().now_or_never().is_none());
        let serving = tokio::task::spawn_blocking(move || {
            for _ in &waiting {
                listener.accept().unwrap();
            }
            let (mut stream, _): (UnixStream, _) = listener.accept().unwrap();
            let fine = b"HTTP/1.1 204 Fine\r\n\r\n";
            std::io::Write::write_all(&mut stream, fine).unwrap();
            stream
        });
        assert_eq!(responding.await.unwrap().status(), 204);
        assert_eq!(proxy.status().upstreams[0].failures_in_a_row, 0);
        drop(serving.await);
    })
    .await;
}
