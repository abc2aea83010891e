use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};
use social::config::StoreSettings;

use crate::kit::app::TestApp;

pub(crate) async fn to_like_twice_is_to_like_once(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let picture = format!(
        "/api/pictures/{}",
        ada.picture(&ada.album("mine").await).await
    );
    let like = format!("{picture}/like");
    for (answer, expected) in [
        (
            grace.put(&like).await,
            json!({"liked": true, "likes": 1, "likes_seq": 1}),
        ),
        (
            grace.put(&like).await,
            json!({"liked": true, "likes": 1, "likes_seq": 1}),
        ),
        (
            ada.put(&like).await,
            json!({"liked": true, "likes": 2, "likes_seq": 2}),
        ),
        (
            grace.delete(&like).await,
            json!({"liked": false, "likes": 1, "likes_seq": 3}),
        ),
        (
            grace.delete(&like).await,
            json!({"liked": false, "likes": 1, "likes_seq": 3}),
        ),
    ] {
        assert_eq!(answer.json::<Value>(StatusCode::OK), expected);
    }
    for (client, liked) in [(&ada, true), (&grace, false), (&server.client(), false)] {
        let seen: Value = client.get(&picture).await.json(StatusCode::OK);
        let seen = (&seen["likes"], &seen["likes_seq"], &seen["liked"]);
        assert_eq!(seen, (&json!(1), &json!(3), &json!(liked)));
    }
}

pub(crate) async fn likes_of_many_are_counted(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let picture = format!(
        "/api/pictures/{}",
        ada.picture(&ada.album("mine").await).await
    );
    let like = format!("{picture}/like");
    let names: Vec<String> = (0..8).map(|number| format!("user{number}")).collect();
    let users = join_all(names.iter().map(|name| server.user(name))).await;
    // Each says it three times at once.
    let likes = users
        .iter()
        .flat_map(|user| (0..3).map(|_| user.put(&like)));
    for answer in join_all(likes).await {
        answer.expect(StatusCode::OK);
    }
    let seen: Value = ada.get(&picture).await.json(StatusCode::OK);
    assert_eq!((&seen["likes"], &seen["likes_seq"]), (&json!(8), &json!(8)));
}

pub(crate) async fn who_is_not_logged_in_likes_nothing(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let picture = ada.picture(&ada.album("mine").await).await;
    let like = format!("/api/pictures/{picture}/like");
    server
        .client()
        .put(&like)
        .await
        .problem(StatusCode::UNAUTHORIZED);
    let nothing = "/api/pictures/0198c0ffee007abc8def0123456789ab/like";
    ada.put(nothing).await.problem(StatusCode::NOT_FOUND);
}
