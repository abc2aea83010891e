//! An application that is dropped: nothing is left of its routes and stages.

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use greenroom_stage::{Placement, Stage};
use http::{Request, StatusCode};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tower::ServiceExt;

use crate::rig::within;

static UNDER_WAY: Notify = Notify::const_new();
static FINISH: Notify = Notify::const_new();

fn is_known(path: &str) -> bool {
    let routes = greenroom_stage::status().routes;
    routes.iter().any(|route| route.path == path)
}

fn has_stage(name: &str) -> bool {
    let stages = greenroom_stage::status().stages;
    stages.iter().any(|stage| stage.name == name)
}

async fn ask(app: &Router, path: &str) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let Ok(response) = app.clone().oneshot(request).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn its_routes_and_its_stage_go_with_it() {
    within(async {
        let stage = Stage::builder("dropped").threads(1..=1).build().unwrap();
        let inline = Router::new()
            .route("/dropped/inline", get(|| async { "inline" }))
            .layer(Placement::inline());
        let app = Router::new()
            .route("/dropped/staged", get(|| async { "staged" }))
            .route_layer(Placement::on(&stage))
            .merge(inline);
        drop(stage);
        for path in ["/dropped/inline", "/dropped/staged"] {
            ask(&app, path).await;
            assert!(is_known(path));
        }
        assert!(has_stage("dropped"));
        drop(app);
        assert!(!is_known("/dropped/inline"));
        // The stage's thread drops its part of the work when the response is there already.
        while is_known("/dropped/staged") || has_stage("dropped") {
            yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_request_under_way_keeps_its_route() {
    within(async {
        let wait = || async {
            UNDER_WAY.notify_one();
            FINISH.notified().await;
        };
        let app = Router::new()
            .route("/dropped/waits", get(wait))
            .layer(Placement::inline());
        let request = Request::get("/dropped/waits").body(Body::empty()).unwrap();
        // The application is gone as soon as it is called.
        let asking = tokio::spawn(app.oneshot(request));
        UNDER_WAY.notified().await;
        assert!(is_known("/dropped/waits"));
        FINISH.notify_one();
        asking.await.unwrap().unwrap();
        assert!(!is_known("/dropped/waits"));
    })
    .await;
}
