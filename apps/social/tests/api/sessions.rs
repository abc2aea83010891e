use http::header::{COOKIE, ORIGIN};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use social::config::StoreSettings;

use crate::kit::app::{PASSWORD, TestApp, send};

pub(crate) async fn the_cookie_is_for_this_site_and_not_for_scripts(store: StoreSettings) {
    let server = TestApp::on(store).await;
    server.user("ada").await;
    let who = json!({"name": " ADA ", "password": PASSWORD});
    let response = server.client().post("/api/sessions", &who).await;
    let begun: Value = response.json(StatusCode::CREATED);
    assert_eq!(begun["user"]["name"], "ada");
    let cookie = response.header("set-cookie");
    let (token, flags) = cookie.split_once("; ").expect("it has flags");
    // 32 bytes, which cannot be guessed.
    assert_eq!(
        token.strip_prefix("session=").map(str::len),
        Some(43),
        "{cookie}"
    );
    let mut flags: Vec<&str> = flags.split("; ").collect();
    flags.sort_unstable();
    assert_eq!(
        flags,
        ["HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=Lax"]
    );
    assert_eq!(response.header("cache-control"), "no-store");
}

pub(crate) async fn the_cookie_of_a_site_with_tls_needs_tls(store: StoreSettings) {
    let server = TestApp::with(|settings| {
        settings.store = store;
        settings.base_url = "https://social.example.org".parse().ok();
    });
    let server = server.await;
    server.user("ada").await;
    let who = json!({"name": "ada", "password": PASSWORD});
    let response = server.client().post("/api/sessions", &who).await;
    assert!(
        response.header("set-cookie").contains("; Secure"),
        "{response:?}"
    );
}

pub(crate) async fn a_wrong_password_and_a_wrong_name_look_alike(store: StoreSettings) {
    let server = TestApp::on(store).await;
    server.user("ada").await;
    let mut details = Vec::new();
    for (name, password) in [("ada", "not her password"), ("nobody", PASSWORD)] {
        let who = json!({"name": name, "password": password});
        let response = server.client().post("/api/sessions", &who).await;
        assert_eq!(response.header("set-cookie"), "");
        details.push(response.problem(StatusCode::UNAUTHORIZED));
    }
    assert_eq!(details[0], details[1]);
}

pub(crate) async fn a_change_needs_the_token_of_the_session(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let grace = server.user("grace").await;
    let session = ada.session.as_ref().expect("she is logged in");
    let theirs = grace.session.as_ref().expect("she is logged in");
    let create = || {
        let request = server.client().request(Method::POST, "/api/albums");
        request
            .header(COOKIE, &session.cookie)
            .json(&json!({"title": "mine"}))
    };
    send(create()).await.problem(StatusCode::FORBIDDEN);
    for token in ["", "x", &theirs.csrf] {
        let response = send(create().header("x-csrf-token", token)).await;
        assert!(
            response.problem(StatusCode::FORBIDDEN).contains("CSRF"),
            "{response:?}"
        );
    }
    send(create().header("x-csrf-token", &session.csrf))
        .await
        .expect(StatusCode::CREATED);
    // Reading needs no token.
    let request = server.client().request(Method::GET, "/api/me");
    send(request.header(COOKIE, &session.cookie))
        .await
        .expect(StatusCode::OK);
}

pub(crate) async fn pages_of_other_origins_change_nothing(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let ours = format!("http://{}", server.address);
    let create = |name: &'static str, value: &str| {
        let request = ada.request(Method::POST, "/api/albums").header(name, value);
        send(request.json(&json!({"title": "mine"})))
    };
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let detail = create(name, value).await.problem(StatusCode::FORBIDDEN);
        assert!(detail.contains("origin"), "{detail}");
    }
    create("origin", &ours).await.expect(StatusCode::CREATED);
    create("sec-fetch-site", "same-origin")
        .await
        .expect(StatusCode::CREATED);

    // Nor does a log-in work from there: a stranger's session would get what the victim uploads.
    let who = json!({"name": "ada", "password": PASSWORD});
    let request = server.client().request(Method::POST, "/api/sessions");
    let response = send(request.header(ORIGIN, "https://evil.example").json(&who)).await;
    response.problem(StatusCode::FORBIDDEN);
}

pub(crate) async fn who_has_logged_out_is_nobody(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let elsewhere = server.client().logged_in("ada", PASSWORD).await;
    ada.get("/api/me").await.expect(StatusCode::OK);
    let response = ada.delete("/api/sessions/current").await;
    response.expect(StatusCode::NO_CONTENT);
    assert!(
        response.header("set-cookie").contains("Max-Age=0"),
        "{response:?}"
    );
    ada.get("/api/me").await.problem(StatusCode::UNAUTHORIZED);
    elsewhere.get("/api/me").await.expect(StatusCode::OK);
}

pub(crate) async fn an_invented_cookie_is_nobody(store: StoreSettings) {
    let server = TestApp::on(store).await;
    for token in ["", "x", &"A".repeat(43), &"A".repeat(5_000)] {
        let request = server.client().request(Method::GET, "/api/me");
        let response = send(request.header(COOKIE, format!("session={token}"))).await;
        response.problem(StatusCode::UNAUTHORIZED);
    }
}
