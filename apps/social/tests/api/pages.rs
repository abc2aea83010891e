use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use http::{Method, StatusCode};
use serde_json::Value;
use social::config::StoreSettings;

use crate::kit::app::{Client, TestApp, TestResponse, send};

async fn get_compressed(client: &Client, path: &str) -> TestResponse {
    let request = client.request(Method::GET, path);
    send(request.header(ACCEPT_ENCODING, "gzip")).await
}

pub(crate) async fn texts_are_compressed_and_pictures_are_not(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let picture = ada.picture(&album).await;
    for path in ["/", "/api", &format!("/albums/{album}"), "/nothing"] {
        let page = get_compressed(&ada, path).await;
        assert_eq!(page.header("content-encoding"), "gzip", "{path}");
        assert_eq!(page.header("vary"), "accept-encoding", "{path}");
        assert!(page.body.starts_with(&[0x1f, 0x8b]), "{path}");
        let plain = ada.get(path).await;
        assert_eq!(plain.header("content-encoding"), "", "{path}");
        assert!(plain.body.len() > 2 * page.body.len(), "{path}");
    }
    for path in [
        &format!("/files/{picture}/large"),
        &format!("/files/{picture}/original"),
        "/api/timeline",
        "/api/openapi.json",
    ] {
        let response = get_compressed(&ada, path).await;
        response.expect(StatusCode::OK);
        assert_eq!(response.header("content-encoding"), "", "{path}");
    }
}

/// Returns the token of a form in a page.
pub(crate) fn token(page: &TestResponse) -> String {
    let page = String::from_utf8_lossy(&page.body).into_owned();
    let begin = "name=\"csrf\" value=\"";
    let at = page.find(begin).expect("it has a form") + begin.len();
    let end = page[at..].find('"').expect("the value ends");
    page[at..at + end].to_owned()
}

/// A page is compressed, with texts of others in it: its secrets must not be the same each time
/// (BREACH).
pub(crate) async fn a_token_stands_in_no_two_pages(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let raw = ada.session.clone().expect("she is logged in").csrf;
    let mut tokens = Vec::new();
    for title in ["one", "two"] {
        let page = ada.get("/albums/new").await;
        let text = String::from_utf8_lossy(&page.body).into_owned();
        assert!(!text.contains(&raw), "the token itself is in the page");
        let token = token(&page);
        let request = ada.request(Method::POST, "/albums");
        let form = format!("csrf={token}&title={title}");
        let made = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        send(made.body(form)).await.expect(StatusCode::OK);
        tokens.push(token);
    }
    assert_ne!(tokens[0], tokens[1]);
    let albums: Value = ada.get("/api/users/ada/albums").await.json(StatusCode::OK);
    assert_eq!(albums.as_array().map(Vec::len), Some(2));
}

pub(crate) async fn the_page_of_the_api_shows_code_as_code(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let page = server.client().get("/api").await;
    page.expect(StatusCode::OK);
    let text = String::from_utf8_lossy(&page.body);
    assert!(!text.contains('`'), "{text}");
    for code in ["POST /api/sessions", "Retry-After"] {
        assert!(text.contains(&format!("<code>{code}</code>")), "{text}");
    }
}
