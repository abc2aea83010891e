use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use serde_json::json;
use social::config::StoreSettings;

use crate::kit::app::{TestApp, send};

pub(crate) async fn what_cannot_be_read_is_a_problem(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let post = |media_type: &'static str, body: &'static str| {
        let request = ada.request(Method::POST, "/api/albums");
        send(request.header(CONTENT_TYPE, media_type).body(body))
    };
    let json = "application/json";
    for (media_type, body, status, about) in [
        (json, "{", StatusCode::BAD_REQUEST, "line 1 column 1"),
        (
            json,
            "1",
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid type: integer",
        ),
        (
            json,
            "{}",
            StatusCode::UNPROCESSABLE_ENTITY,
            "missing field `title`",
        ),
        (
            json,
            r#"{"title": 1}"#,
            StatusCode::UNPROCESSABLE_ENTITY,
            "title: invalid type",
        ),
        (
            json,
            r#"{"title": "x", "y": 1}"#,
            StatusCode::UNPROCESSABLE_ENTITY,
            "unknown field `y`",
        ),
        (
            "text/plain",
            r#"{"title": "x"}"#,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "application/json",
        ),
    ] {
        let detail = post(media_type, body).await.problem(status);
        assert!(detail.contains(about), "{body}: {detail}");
    }
    for path in [
        "/api/albums/123",
        "/api/timeline?limit=many",
        "/api/timeline?before=1",
        "/api/timeline?page=2",
        "/files/1/small",
    ] {
        ada.get(path).await.problem(StatusCode::BAD_REQUEST);
    }
    let detail = ada
        .get("/api/albums/123")
        .await
        .problem(StatusCode::BAD_REQUEST);
    assert!(detail.contains("32 hexadecimal digits"), "{detail}");
}

pub(crate) async fn addresses_and_methods_that_are_not_there_are_problems(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let client = server.client();
    for path in ["/api/nothing", "/api/albums/1/2/3", "/api/users/ada/x"] {
        let detail = client.get(path).await.problem(StatusCode::NOT_FOUND);
        assert!(detail.contains("GET /api"), "{path}: {detail}");
    }
    let response = client.put("/api/albums").await;
    response.problem(StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.header("allow"), "POST");
    let response = client.post("/time", &json!({})).await;
    response.problem(StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.header("allow"), "GET,HEAD");
}

pub(crate) async fn responses_say_what_browsers_may_do_with_them(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let client = server.client();
    for path in [
        "/time",
        "/api/timeline",
        "/api/nothing",
        "/api/me",
        "/api",
        "/health",
        "/nothing",
    ] {
        let response = client.get(path).await;
        assert_eq!(
            response.header("x-content-type-options"),
            "nosniff",
            "{path}"
        );
        assert_eq!(response.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(response.header("referrer-policy"), "same-origin", "{path}");
        let policy = response.header("content-security-policy");
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        let is_page = path == "/nothing" || path == "/api";
        assert!(
            is_page || policy.starts_with("default-src 'none'"),
            "{path}: {policy}"
        );
    }
}
