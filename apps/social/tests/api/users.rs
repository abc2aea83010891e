use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};
use social::config::StoreSettings;

use crate::kit::app::{PASSWORD, TestApp};

fn new_user(name: &str) -> Value {
    json!({"name": name, "email": "ada@example.org", "password": PASSWORD})
}

pub(crate) async fn a_user_is_added_and_found(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let client = server.client();
    let mut user = new_user("Ada");
    user["display"] = "Ada Lovelace".into();
    let response = client.post("/api/users", &user).await;
    let added: Value = response.json(StatusCode::CREATED);
    assert_eq!(response.header("location"), "/api/users/ada");
    assert_eq!(
        (&added["name"], &added["display"]),
        (&json!("ada"), &json!("Ada Lovelace"))
    );

    let found: Value = client.get("/api/users/Ada").await.json(StatusCode::OK);
    assert_eq!(found, added);
    for secret in ["email", "password", "webhook"] {
        assert!(found.get(secret).is_none(), "{secret} is nobody's business");
    }
    let detail = client
        .get("/api/users/grace")
        .await
        .problem(StatusCode::NOT_FOUND);
    assert_eq!(detail, "there is no such user");
}

pub(crate) async fn a_name_is_added_once(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let client = server.client();
    client
        .post("/api/users", &new_user("ada"))
        .await
        .expect(StatusCode::CREATED);
    let again = client.post("/api/users", &new_user("ADA")).await;
    again.problem(StatusCode::CONFLICT);
}

pub(crate) async fn of_ten_sign_ups_of_one_name_at_once_one_is_taken(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let clients: Vec<_> = (0..10).map(|_| server.client()).collect();
    let user = new_user("ada");
    let responses = join_all(
        clients
            .iter()
            .map(|client| client.post("/api/users", &user)),
    )
    .await;
    let count = |status| {
        responses
            .iter()
            .filter(|response| response.status == status)
            .count()
    };
    let counts = (count(StatusCode::CREATED), count(StatusCode::CONFLICT));
    assert_eq!(counts, (1, 9), "{responses:?}");
}

pub(crate) async fn a_field_that_is_not_allowed_is_named(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let client = server.client();
    for (field, value) in [
        ("name", "1ada"),
        ("email", "ada"),
        ("password", "short"),
        ("display", "a\u{7}b"),
    ] {
        let mut user = new_user("ada");
        user[field] = value.into();
        assert_eq!(client.post("/api/users", &user).await.field(), field);
    }
    client
        .get("/api/users/ada")
        .await
        .expect(StatusCode::NOT_FOUND);
}

pub(crate) async fn a_list_has_pages(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("five").await;
    let mut uploaded = Vec::new();
    for _ in 0..5 {
        uploaded.insert(0, ada.picture(&album).await);
    }
    let lists = [
        "/api/timeline".to_owned(),
        "/api/users/ada/pictures".to_owned(),
        format!("/api/albums/{album}/pictures"),
    ];
    for list in lists {
        let mut seen = Vec::new();
        let mut next = String::new();
        loop {
            let page: Value = ada
                .get(&format!("{list}?limit=2{next}"))
                .await
                .json(StatusCode::OK);
            let pictures = page["pictures"].as_array().expect("a list");
            assert!((1..=2).contains(&pictures.len()), "{page}");
            seen.extend(pictures.iter().map(|picture| picture["id"].clone()));
            match page["next"].as_str() {
                Some(id) => next = format!("&before={id}"),
                None => break,
            }
        }
        assert_eq!(seen, uploaded, "{list}");
    }
    let albums: Value = ada.get("/api/users/ada/albums").await.json(StatusCode::OK);
    assert_eq!(albums[0]["id"], json!(album));
}
