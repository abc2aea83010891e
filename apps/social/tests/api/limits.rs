use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use serde_json::json;
use social::config::{LimitSettings, Settings, StoreSettings};

use crate::kit::app::{PASSWORD, TestApp, TestResponse, png, send};

async fn limited(store: StoreSettings, change: impl FnOnce(&mut LimitSettings)) -> TestApp {
    let server = TestApp::with(|settings: &mut Settings| {
        settings.store = store;
        settings.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
        change(&mut settings.limits);
    });
    server.await
}

/// Five a minute: one at once, and the next one after 12 s.
const FEW: u32 = 5;

fn too_many(response: &TestResponse) {
    let detail = response.problem(StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(detail, "too many requests");
    let seconds: u64 = response
        .header("retry-after")
        .parse()
        .expect("whole seconds");
    assert!((1..=60).contains(&seconds), "{seconds}");
}

async fn log_in(server: &TestApp, from: &str, name: &str) -> TestResponse {
    let request = server.client().request(Method::POST, "/api/sessions");
    let who = json!({"name": name, "password": "wrong, wrong"});
    send(request.header("x-forwarded-for", from).json(&who)).await
}

pub(crate) async fn log_ins_are_limited_by_client_and_by_name(store: StoreSettings) {
    let server = limited(store, |limits| limits.log_ins = 1).await;
    server.user("ada").await;
    for last in 1..=10 {
        log_in(&server, &format!("192.0.2.{last}"), "ada")
            .await
            .problem(StatusCode::UNAUTHORIZED);
    }
    too_many(&log_in(&server, "192.0.2.1", "grace").await);
    too_many(&log_in(&server, "192.0.2.11", "ADA").await);
    log_in(&server, "192.0.2.12", "linus")
        .await
        .problem(StatusCode::UNAUTHORIZED);
    // The address that a client claims by itself is ignored.
    too_many(&log_in(&server, "192.0.2.99, 192.0.2.12", "eve").await);
}

pub(crate) async fn a_few_wrong_tries_do_not_shut_out_the_user(store: StoreSettings) {
    let server = limited(store, |limits| limits.log_ins = 1).await;
    server.user("ada").await;
    for last in 1..=9 {
        log_in(&server, &format!("192.0.2.{last}"), "ada")
            .await
            .problem(StatusCode::UNAUTHORIZED);
    }
    for last in 10..=12 {
        let request = server.client().request(Method::POST, "/api/sessions");
        let request = request.header("x-forwarded-for", format!("192.0.2.{last}"));
        let who = json!({"name": "ada", "password": PASSWORD});
        send(request.json(&who)).await.expect(StatusCode::CREATED);
    }
}

pub(crate) async fn sign_ups_are_limited_by_client(store: StoreSettings) {
    let server = limited(store, |limits| limits.sign_ups = FEW).await;
    let sign_up = async |from: &str, name: &str| {
        let request = server.client().request(Method::POST, "/api/users");
        let user = json!({"name": name, "email": "a@example.org", "password": PASSWORD});
        send(request.header("x-forwarded-for", from).json(&user)).await
    };
    sign_up("2001:db8::1", "ada")
        .await
        .expect(StatusCode::CREATED);
    too_many(&sign_up("2001:db8::2", "grace").await);
    sign_up("2001:db8:0:1::2", "grace")
        .await
        .expect(StatusCode::CREATED);
}

pub(crate) async fn changes_and_uploads_are_limited_by_user(store: StoreSettings) {
    let server = limited(store, |limits| {
        limits.changes = 3 * FEW;
        limits.uploads = FEW;
    })
    .await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let album = ada.album("one of three").await;
    ada.picture(&album).await;
    let picture = png(2, 2);
    too_many(&ada.upload(&album, &[("picture", &picture)]).await);
    too_many(&ada.post("/api/albums", &json!({"title": "four"})).await);
    ada.get("/api/me").await.expect(StatusCode::OK);
    grace.album("hers").await;
}

pub(crate) async fn requests_are_limited_by_client_but_not_the_health_check(store: StoreSettings) {
    let server = limited(store, |limits| limits.requests = 2 * FEW).await;
    let client = server.client();
    let get = async |from: &str, path: &str| {
        let request = client.request(Method::GET, path);
        send(request.header("x-forwarded-for", from)).await
    };
    get("192.0.2.1", "/time").await.expect(StatusCode::OK);
    get("192.0.2.1", "/api/nothing")
        .await
        .expect(StatusCode::NOT_FOUND);
    too_many(&get("192.0.2.1", "/api/timeline").await);
    get("192.0.2.1", "/health").await.expect(StatusCode::OK);
    get("192.0.2.2", "/time").await.expect(StatusCode::OK);
}

/// Each log-in computes for some 30 ms, and pages run on the same stage. A page that is rejected is
/// not requested again.
pub(crate) async fn a_flood_of_log_ins_from_everywhere_refuses_no_page(store: StoreSettings) {
    const LOG_INS: usize = 40;
    let server = limited(store, |_| {}).await;
    server.client().get("/").await.expect(StatusCode::OK);
    let succeeded = Arc::new(AtomicUsize::new(0));
    let flood = (0..LOG_INS).map(|last| {
        let (client, succeeded) = (server.client(), Arc::clone(&succeeded));
        tokio::spawn(async move {
            let request = client.request(Method::POST, "/api/sessions");
            let request = request.header("x-forwarded-for", format!("198.51.100.{last}"));
            let who = json!({"name": format!("nobody-{last}"), "password": "wrong, wrong"});
            let response = request.json(&who).send().await;
            succeeded.fetch_add(1, Ordering::Relaxed);
            response.expect("the server responds").status()
        })
    });
    let flood: Vec<_> = flood.collect();
    while succeeded.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        let request = server.client().request(Method::GET, "/");
        let request = request.header("x-forwarded-for", "203.0.113.7");
        let response = request.send().await.expect("the server responds");
        assert_eq!(response.status(), StatusCode::OK);
    }
    for log_in in flood {
        let status = log_in.await.expect("it does not panic");
        let expected = [StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE];
        assert!(expected.contains(&status), "{status}");
    }
}
