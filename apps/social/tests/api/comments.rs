use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use social::config::StoreSettings;

use super::pages::token;
use crate::kit::app::{Client, TestApp, send};

async fn picture_of(client: &Client) -> String {
    let album = client.album("mine").await;
    format!("/api/pictures/{}", client.picture(&album).await)
}

async fn say(client: &Client, picture: &str, text: &str) -> String {
    let said = client
        .post(&format!("{picture}/comments"), &json!({"text": text}))
        .await;
    let said: Value = said.json(StatusCode::CREATED);
    assert_eq!(said["text"], text);
    format!("/api/comments/{}", said["id"].as_str().expect("a text"))
}

pub(crate) async fn comments_are_shown_the_oldest_first(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let picture = picture_of(&ada).await;
    for text in ["one", "two", "three"] {
        say(&ada, &picture, text).await;
    }
    let first = format!("{picture}/comments?limit=2");
    let first: Value = server.client().get(&first).await.json(StatusCode::OK);
    let texts = |page: &Value| {
        let comments = page["comments"].as_array().expect("a list");
        comments
            .iter()
            .map(|comment| comment["text"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&first), ["one", "two"]);
    let next = first["next"].as_str().expect("there is a next page");
    let second = format!("{picture}/comments?limit=2&after={next}");
    let second: Value = ada.get(&second).await.json(StatusCode::OK);
    assert_eq!(
        (texts(&second), &second["next"]),
        (vec![json!("three")], &Value::Null)
    );
    let seen: Value = ada.get(&picture).await.json(StatusCode::OK);
    assert_eq!(
        (&seen["comments"], &seen["comments_seq"]),
        (&json!(3), &json!(3))
    );
}

/// Without scripts, by the page's form; the first page has 60 comments.
pub(crate) async fn who_comments_sees_it_whatever_was_said_before(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let picture = picture_of(&ada).await;
    let page = picture.trim_start_matches("/api").to_owned();
    let say_by_form = async |text: &str| {
        let token = token(&ada.get(&page).await);
        let request = ada.request(Method::POST, &format!("{page}/comments"));
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let shown = send(request.body(format!("csrf={token}&text={text}"))).await;
        shown.expect(StatusCode::OK);
        let shown = String::from_utf8_lossy(&shown.body).into_owned();
        (shown.contains("the_first"), shown.contains("the_last"))
    };
    assert_eq!(say_by_form("the_first").await, (true, false));
    for _ in 0..30 {
        say(&ada, &picture, "hm").await;
        say(&grace, &picture, "hm").await;
    }
    assert_eq!(say_by_form("the_last").await, (false, true));
}

pub(crate) async fn the_author_and_the_owner_delete_a_comment(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let picture = picture_of(&ada).await;
    let (first, second) = (
        say(&grace, &picture, "one").await,
        say(&grace, &picture, "two").await,
    );
    let own = say(&ada, &picture, "three").await;
    grace.delete(&own).await.problem(StatusCode::FORBIDDEN);
    server
        .client()
        .delete(&own)
        .await
        .problem(StatusCode::UNAUTHORIZED);
    grace.delete(&first).await.expect(StatusCode::NO_CONTENT);
    ada.delete(&second).await.expect(StatusCode::NO_CONTENT);
    ada.delete(&second).await.problem(StatusCode::NOT_FOUND);
    let seen: Value = ada.get(&picture).await.json(StatusCode::OK);
    assert_eq!(seen["comments"], 1);
}

pub(crate) async fn a_comment_has_a_text(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let path = format!("{}/comments", picture_of(&ada).await);
    for text in ["", "  ", &"x".repeat(1_001)] {
        assert_eq!(
            ada.post(&path, &json!({"text": text})).await.field(),
            "text"
        );
    }
    let nobody = server.client().post(&path, &json!({"text": "x"})).await;
    nobody.problem(StatusCode::UNAUTHORIZED);
}
