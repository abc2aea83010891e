//! Limits: requests at an upstream, requests that go round, many at once.

use std::sync::Arc;

use axum::Router;
use greenroom_proxy::Settings;
use greenroom_server::Server;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::rig::{Rig, body_of, get, nobody, rest, status_of, to, until, within};
use crate::upstreams::{serve, start_echo};

#[tokio::test]
async fn beyond_what_an_upstream_may_have_it_is_503() {
    within(async {
        let go_on = Arc::new(Semaphore::new(0));
        let told = Arc::clone(&go_on);
        let waits = Router::new().fallback(move || {
            let told = Arc::clone(&told);
            async move {
                told.acquire().await.unwrap().forget();
                "done"
            }
        });
        let settings = Settings {
            in_flight_max: 2,
            ..to([serve(waits).await])
        };
        let rig = Rig::with(settings);
        let mut streams = [rig.connect().await, rig.connect().await];
        for stream in &mut streams {
            stream.write_all(get("/", "").as_bytes()).await.unwrap();
        }
        until(|| rig.upstream(0).in_flight == 2).await;
        let response = rig.get("/", "").await;
        assert_eq!(status_of(&response), 503);
        assert!(
            response
                .to_ascii_lowercase()
                .contains("\r\nretry-after: 1\r\n"),
            "{response}"
        );
        assert_eq!(rig.status().refused, 1);
        go_on.add_permits(2);
        for stream in &mut streams {
            assert!(rest(stream).await.ends_with("done"));
        }
        until(|| rig.upstream(0).in_flight == 0).await;
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_thousand_requests_at_once_all_succeed() {
    within(async {
        let settings = Settings {
            idle_max: 8,
            ..to([start_echo().await, start_echo().await])
        };
        let rig = Arc::new(Rig::with(settings));
        let mut requests = JoinSet::new();
        for number in 0..1_000 {
            let rig = Arc::clone(&rig);
            requests.spawn(async move {
                let response = rig.get(&format!("/{number}"), "").await;
                assert_eq!(status_of(&response), 200, "{response}");
                assert!(response.contains(&format!("GET /{number}\n")), "{response}");
            });
        }
        while let Some(done) = requests.join_next().await {
            done.unwrap();
        }
        until(|| {
            rig.status()
                .upstreams
                .iter()
                .all(|upstream| upstream.in_flight == 0)
        })
        .await;
        let upstreams = rig.status().upstreams;
        let failures: u64 = upstreams
            .iter()
            .map(|upstream| upstream.failures.total())
            .sum();
        assert_eq!(
            (upstreams[0].requests + upstreams[1].requests, failures),
            (1_000, 0)
        );
        let rig = Arc::into_inner(rig).expect("all requests are over");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_request_that_comes_round_again_is_508() {
    within(async {
        let own = nobody();
        let server = Server::builder().listen(own);
        let everything = |proxy| Router::new().fallback_service(proxy);
        let rig = Rig::routed(server, to([own]), everything);
        let response = rig.get("/", "").await;
        assert_eq!(status_of(&response), 508);
        assert_eq!(body_of(&response), "the request goes round\n");
        assert_eq!((rig.status().loops, rig.upstream(0).requests), (1, 1));
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn proxies_behind_proxies_are_no_loop() {
    within(async {
        let inner = Rig::before([start_echo().await]);
        let outer = Rig::before([inner.address]);
        let response = outer.get("/a", "Via: 1.1 elsewhere\r\n").await;
        assert_eq!(status_of(&response), 200);
        let vias = response
            .lines()
            .filter(|line| line.starts_with("via: 1.1 "))
            .count();
        assert_eq!(vias, 3, "{response}");
        let many = "Via: 1.1 elsewhere\r\n".repeat(33);
        assert_eq!(status_of(&outer.get("/a", &many).await), 508);
        outer.end().await;
        inner.end().await;
    })
    .await;
}
