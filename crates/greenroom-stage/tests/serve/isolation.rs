use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use futures_util::future::join_all;
use greenroom_stage::Placement;
use greenroom_stage::placement::STREAK_LIKELY;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::rig::{Client, compute_on, get as fetch, patient, serve, within};

/// It is released only after the response to `/hello`.
#[tokio::test]
async fn an_undeclared_blocking_handler_does_not_stop_another() {
    within(async {
        let gate = Arc::new(Barrier::new(2));
        let blocked = Arc::clone(&gate);
        let app = Router::new()
            .route(
                "/isolation/block",
                get(|| async move {
                    blocked.wait();
                    "blocked"
                }),
            )
            .route("/isolation/hello", get(|| async { "hello" }))
            .layer(Placement::auto_on(
                &patient().threads(1..=1).build().unwrap(),
            ));
        let address = serve(app).await;
        let blocking = tokio::spawn(fetch(address, "/isolation/block"));
        for _ in 0..200 {
            assert_eq!(fetch(address, "/isolation/hello").await.body, "hello");
        }
        gate.wait();
        assert_eq!(blocking.await.unwrap().body, "blocked");
    })
    .await;
}

/// It is taken for short: nothing is known of it yet, or it was short so far. It computes until the
/// other has its response.
#[tokio::test]
async fn a_handler_that_computes_against_expectation_does_not_stop_another() {
    static RELEASED: AtomicBool = AtomicBool::new(false);
    async fn computes(Path((_, is_short)): Path<(usize, bool)>) -> &'static str {
        while !is_short && !RELEASED.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        "computed"
    }
    within(async {
        for (round, (short_runs, computing)) in
            [(0, 1), (0, 8), (8, 1), (8, 20)].into_iter().enumerate()
        {
            RELEASED.store(false, Ordering::Relaxed);
            let app = Router::new()
                .route("/isolation/computes/{round}/{is_short}", get(computes))
                .route("/isolation/beside", get(|| async { "hello" }))
                .layer(Placement::auto_on(
                    &patient().threads(1..=1).build().unwrap(),
                ));
            let address = serve(app).await;
            let ask = move |is_short: bool| async move {
                fetch(address, &format!("/isolation/computes/{round}/{is_short}")).await
            };
            for _ in 0..short_runs {
                assert_eq!(ask(true).await.body, "computed");
            }
            let computing: Vec<_> = (0..computing).map(|_| tokio::spawn(ask(false))).collect();
            for _ in 0..20 {
                assert_eq!(fetch(address, "/isolation/beside").await.body, "hello");
            }
            RELEASED.store(true, Ordering::Relaxed);
            for computed in computing {
                assert_eq!(computed.await.unwrap().body, "computed");
            }
        }
    })
    .await;
}

/// As one that has found its place there does not.
#[tokio::test]
async fn a_short_route_that_was_given_to_a_stage_does_not_wait_for_what_computes_there() {
    within(async {
        let stage = patient().threads(1..=1).build().unwrap();
        let placement = Placement::on(&stage).short_run(Duration::from_hours(1));
        let app = Router::new().route("/isolation/given", get(|| async { "short" }));
        let address = serve(app.layer(placement)).await;
        for _ in 0..STREAK_LIKELY {
            assert_eq!(fetch(address, "/isolation/given").await.body, "short");
        }
        let computing = compute_on(&stage).await;
        assert_eq!(fetch(address, "/isolation/given").await.body, "short");
        drop(computing);
    })
    .await;
}

/// They wait for each other, so they have responses only if all of them run at once.
#[tokio::test]
async fn two_hundred_blocking_calls_run_at_once() {
    within(async {
        let gate = Arc::new(Barrier::new(200));
        let app = Router::new()
            .route(
                "/isolation/many",
                get(|State(gate): State<Arc<Barrier>>| async move {
                    gate.wait();
                    "through"
                }),
            )
            .with_state(gate)
            .layer(Placement::auto_on(&patient().build().unwrap()));
        let address = serve(app).await;
        let calls = (0..200).map(|_| fetch(address, "/isolation/many"));
        let responses = join_all(calls).await;
        assert!(responses.iter().all(|response| response.status == 200));
    })
    .await;
}

#[tokio::test]
async fn a_panic_costs_its_request_a_500_wherever_it_runs() {
    within(async {
        async fn panics() -> &'static str {
            panic!("on purpose")
        }
        let stage = patient().threads(1..=1).build().unwrap();
        let app = Router::new()
            .merge(
                Router::new()
                    .route("/isolation/staged", get(panics))
                    .layer(Placement::on(&stage)),
            )
            .merge(
                Router::new()
                    .route("/isolation/inline", get(panics))
                    .layer(Placement::inline()),
            );
        let mut client = Client::connect(serve(app).await).await;
        for path in [
            "/isolation/staged",
            "/isolation/inline",
            "/isolation/staged",
        ] {
            let response = client.get(path).await;
            assert_eq!(
                (response.status, response.body.as_str()),
                (500, "the handler failed\n")
            );
        }
        assert_eq!(
            (stage.status().panicked, stage.status().threads.total),
            (2, 1)
        );
    })
    .await;
}

#[tokio::test]
async fn an_async_handler_on_a_stage_uses_what_its_loop_offers() {
    within(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = listener.local_addr().unwrap();
        let stage = patient().threads(1..=1).build().unwrap();
        let proxy = move || async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let text = tokio::spawn(async move {
                let mut text = String::new();
                let mut stream = TcpStream::connect(upstream).await.unwrap();
                stream.read_to_string(&mut text).await.unwrap();
                text
            });
            format!(
                "{} on {}",
                text.await.unwrap(),
                thread::current().name().unwrap()
            )
        };
        let app = Router::new().route("/isolation/proxy", get(proxy));
        let address = serve(app.layer(Placement::on(&stage))).await;
        let upstream = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"text")
                .await
                .unwrap();
        };
        let (response, ()) = tokio::join!(fetch(address, "/isolation/proxy"), upstream);
        assert_eq!(response.body, "text on serve-0");
    })
    .await;
}

#[tokio::test]
async fn a_synchronous_function_is_a_handler_with_its_extractors() {
    within(async {
        let stage = patient().threads(1..=1).build().unwrap();
        let function = |Path(times): Path<usize>, State(sign): State<char>, body: String| {
            format!(
                "{}{sign} on {}",
                body.repeat(times),
                thread::current().name().unwrap()
            )
        };
        let app = Router::new()
            .route("/isolation/repeat/{times}", post(stage.handler(function)))
            .route("/isolation/none", get(stage.handler(|| "none")))
            .with_state('!');
        let mut client = Client::connect(serve(app).await).await;
        let post = |path: &str| {
            format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nho")
        };
        client.send(&post("/isolation/repeat/3")).await;
        assert_eq!(client.receive().await.body, "hohoho! on serve-0");
        client.send(&post("/isolation/repeat/three")).await;
        assert_eq!(client.receive().await.status, 400);
        assert_eq!(client.get("/isolation/none").await.body, "none");
    })
    .await;
}
