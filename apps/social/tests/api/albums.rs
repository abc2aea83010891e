use http::StatusCode;
use serde_json::{Value, json};
use social::config::StoreSettings;

use crate::kit::app::TestApp;

pub(crate) async fn an_album_is_made_shown_and_deleted(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    server
        .client()
        .post("/api/albums", &json!({"title": "mine"}))
        .await
        .problem(StatusCode::UNAUTHORIZED);
    let response = ada.post("/api/albums", &json!({"title": " mine "})).await;
    let made: Value = response.json(StatusCode::CREATED);
    assert_eq!(
        (&made["title"], &made["owner"]["name"]),
        (&json!("mine"), &json!("ada"))
    );
    let path = response.header("location");
    let shown: Value = server.client().get(path).await.json(StatusCode::OK);
    assert_eq!(shown, made);
    assert_eq!(
        ada.post("/api/albums", &json!({"title": ""})).await.field(),
        "title"
    );

    ada.delete(path).await.expect(StatusCode::NO_CONTENT);
    ada.get(path).await.problem(StatusCode::NOT_FOUND);
    ada.delete(path).await.problem(StatusCode::NOT_FOUND);
}

pub(crate) async fn only_its_owner_deletes_an_album(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let path = format!("/api/albums/{}", ada.album("mine").await);
    server
        .client()
        .delete(&path)
        .await
        .problem(StatusCode::UNAUTHORIZED);
    grace.delete(&path).await.problem(StatusCode::FORBIDDEN);
    ada.get(&path).await.expect(StatusCode::OK);
}

pub(crate) async fn a_deleted_album_takes_its_pictures_with_it_at_once(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let (album, other) = (ada.album("goes").await, ada.album("stays").await);
    let (gone, kept) = (ada.picture(&album).await, ada.picture(&other).await);
    // All of them are in the cache now.
    for picture in [&gone, &kept] {
        ada.get(&format!("/api/pictures/{picture}"))
            .await
            .expect(StatusCode::OK);
    }
    ada.get("/api/timeline").await.expect(StatusCode::OK);
    ada.delete(&format!("/api/albums/{album}"))
        .await
        .expect(StatusCode::NO_CONTENT);

    for path in [
        format!("/api/pictures/{gone}"),
        format!("/api/pictures/{gone}/comments"),
        format!("/files/{gone}/small"),
        format!("/api/albums/{album}/pictures"),
    ] {
        ada.get(&path).await.problem(StatusCode::NOT_FOUND);
    }
    for list in ["/api/timeline", "/api/users/ada/pictures"] {
        let page: Value = ada.get(list).await.json(StatusCode::OK);
        let pictures = page["pictures"].as_array().expect("a list");
        let ids: Vec<&Value> = pictures.iter().map(|picture| &picture["id"]).collect();
        assert_eq!(ids, [&json!(kept)], "{list}");
    }
    ada.get(&format!("/files/{kept}/small"))
        .await
        .expect(StatusCode::OK);
}
