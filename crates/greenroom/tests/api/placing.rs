//! Placement of a router's handlers, with and without placements of the application's own.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use futures_util::StreamExt;
use futures_util::future::join_all;
use greenroom::{Placed, Placement, RouteStatus, Stage};
use greenroom_stage::placement::STREAK_FIRST;
use http::{Request, StatusCode};

use crate::rig::{Rig, ask, get as fetch, http1, within};

/// More than there are loops, and more than may compute at once.
const BLOCKED: usize = 8;

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

fn routes(rig: &Rig, path: &str) -> Vec<RouteStatus> {
    let routes = rig.handle.status().routes.into_iter();
    routes.filter(|route| route.path == path).collect()
}

/// They wait for each other and for the test, which lets them go after the response to `/hello`.
#[tokio::test]
async fn handlers_that_block_hold_up_nobody() {
    within(async {
        let gate = Arc::new(Barrier::new(BLOCKED + 1));
        let blocked = Arc::clone(&gate);
        let app = Router::new()
            .route("/placing/hello", get(|| async { "hello" }))
            .route(
                "/placing/block",
                get(|| async move {
                    blocked.wait();
                    "blocked"
                }),
            );
        let rig = Rig::start(app);
        let blocking = (0..BLOCKED).map(|_| tokio::spawn(fetch(rig.url("/placing/block"))));
        let blocking: Vec<_> = blocking.collect();
        for _ in 0..100 {
            assert_eq!(fetch(rig.url("/placing/hello")).await.1, "hello");
        }
        tokio::task::spawn_blocking(move || gate.wait())
            .await
            .unwrap();
        for response in join_all(blocking).await {
            assert_eq!(response.unwrap(), (StatusCode::OK, "blocked".into()));
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_route_begins_on_the_stage_and_moves_to_the_loop() {
    within(async {
        let router = Router::new().route("/placing/short", get(|| async { thread_name() }));
        // However slow the machine is.
        let placement = Placement::auto().short_run(Duration::from_hours(1));
        let rig = Rig::start(router.layer(placement));
        for _ in 0..STREAK_FIRST {
            let thread = fetch(rig.url("/placing/short")).await.1;
            assert!(thread.starts_with("stage-"), "{thread}");
        }
        let placed = routes(&rig, "/placing/short");
        assert!(
            placed
                .iter()
                .any(|route| route.placed == Placed::AutoInline)
        );
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_inner_placement_decides_and_is_the_one_that_is_told_of() {
    within(async {
        let stage = Stage::builder("reports").threads(1..=1).build().unwrap();
        let app = Router::new()
            .route("/placing/inline", get(|| async { thread_name() }))
            .route(
                "/placing/slow",
                get(|| async {
                    thread::sleep(Duration::from_millis(2));
                    thread_name()
                }),
            )
            .route_layer(Placement::inline())
            .merge(
                Router::new()
                    .route("/placing/report", get(|| async { thread_name() }))
                    .layer(Placement::on(&stage)),
            )
            .route("/placing/handler", get(stage.handler(thread_name)));
        let rig = Rig::start(app);
        for _ in 0..3 {
            assert_eq!(fetch(rig.url("/placing/report")).await.1, "reports-0");
            assert_eq!(fetch(rig.url("/placing/handler")).await.1, "reports-0");
        }
        fetch(rig.url("/placing/inline")).await;
        fetch(rig.url("/placing/slow")).await;
        for path in ["/placing/inline", "/placing/slow", "/placing/slow"] {
            let thread = fetch(rig.url(path)).await.1;
            assert!(thread.starts_with("loop-"), "{path}: {thread}");
        }
        let placed = |path| {
            // On a busy machine the outer one may be sent back, and is told of from then on.
            let routes = routes(&rig, path).into_iter();
            let unmoved = routes.filter(|route| route.moves == 0);
            unmoved.map(|route| route.placed).collect::<Vec<_>>()
        };
        assert_eq!(placed("/placing/report"), [Placed::Staged]);
        assert_eq!(placed("/placing/inline"), [Placed::Inline]);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn what_a_router_makes_is_placed_as_the_router_is() {
    within(async {
        let app = Router::new().route("/placing/made", get(|| async { thread_name() }));
        let rig = Rig::start(app.into_make_service());
        let first = fetch(rig.url("/placing/made")).await.1;
        assert!(first.starts_with("stage-"), "{first}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn status_is_served_as_json() {
    within(async {
        let app = Router::new().route("/placing/status", get(greenroom::status_handler));
        let rig = Rig::start(app);
        rig.has_loops(2).await;
        fetch(rig.url("/placing/status")).await;
        let text = fetch(rig.url("/placing/status")).await.1;
        let status: serde_json::Value = serde_json::from_str(&text).unwrap();
        let routes = status["routes"].as_array().unwrap();
        let own = routes
            .iter()
            .find(|route| route["path"] == "/placing/status");
        let own = own.unwrap();
        assert_eq!(
            (&own["method"], &own["placed"]),
            (&"GET".into(), &"auto_staged".into())
        );
        assert!(own["poll_time"]["count"].as_u64() >= Some(1));
        let stages = status["stages"].as_array().unwrap();
        let default = stages.iter().find(|stage| stage["name"] == "stage");
        assert_eq!(default.unwrap()["queue_wait_max_micros"], 500_000);
        let loops = status["loops"].as_array().unwrap();
        assert!(loops.iter().any(|each| each["name"] == "loop-1"));
        rig.end().await;
    })
    .await;
}

/// It keeps its thread at each part, but the loop would serve others between any two.
#[tokio::test]
async fn what_is_done_with_a_part_of_a_body_is_no_run_of_its_own() {
    const PAUSE: Duration = Duration::from_millis(20);
    within(async {
        let take = |body: Body| async {
            let mut parts = body.into_data_stream();
            let mut count = 0;
            while let Some(part) = parts.next().await {
                count += u32::from(!part.unwrap().is_empty());
                thread::sleep(PAUSE);
            }
            count.to_string()
        };
        let router = Router::new().route("/placing/take", post(take));
        // 20 ms are not counted of a part of a kilobyte, then.
        let placement = Placement::auto().short_run(Duration::from_secs(2));
        let rig = Rig::start(router.layer(placement));
        let request = Request::post(rig.url("/placing/take"));
        let body = Body::from(vec![0; 1024 * 1024]);
        let (status, parts) = ask(&http1(), request.body(body).unwrap()).await;
        assert_eq!(status, StatusCode::OK);
        let parts: u32 = parts.parse().unwrap();
        assert!(parts >= 8, "{parts}");
        let told = routes(&rig, "/placing/take").pop().unwrap().poll_time;
        let is_less = u128::from(told.max_micros) < (parts * PAUSE / 2).as_micros();
        assert_eq!((told.count, is_less), (1, true), "{told:?}");
        rig.end().await;
    })
    .await;
}
