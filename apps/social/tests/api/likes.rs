use std::future::ready;
use std::time::Duration;

use axum::{Json, Router};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use social::config::StoreSettings;
use social::model::TaskKind;
use social::store::Retention;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::kit::app::{TestApp, send};
use crate::kit::wait::until;

pub(crate) async fn to_like_twice_is_to_like_once(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let picture = format!(
        "/api/pictures/{}",
        ada.picture(&ada.album("mine").await).await
    );
    let like = format!("{picture}/like");
    for (response, expected) in [
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
        assert_eq!(response.json::<Value>(StatusCode::OK), expected);
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
    // Each sends it three times at once.
    let likes = users
        .iter()
        .flat_map(|user| (0..3).map(|_| user.put(&like)));
    for response in join_all(likes).await {
        response.expect(StatusCode::OK);
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

pub(crate) async fn a_like_that_comes_again_is_no_news_to_a_webhook(store: StoreSettings) {
    const NOTHING: Retention = Retention {
        events_max: 0,
        events_for: Duration::from_hours(1),
        tasks_for: Duration::ZERO,
    };
    let server = TestApp::with(|settings| {
        settings.store = store;
        settings.webhook.allow_private = true;
    })
    .await;
    let (posted, mut received) = mpsc::unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let hook = move |Json(body): Json<Value>| {
        let sent = posted.send(body["kind"].clone());
        ready(sent.map_or(StatusCode::GONE, |()| StatusCode::NO_CONTENT))
    };
    let hook = Router::new().fallback(hook);
    let serving = tokio::spawn(async move { axum::serve(listener, hook).await });
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let picture = ada.picture(&ada.album("mine").await).await;
    let request = ada.request(Method::PATCH, "/api/me");
    let change = json!({"webhook": format!("http://{address}/")});
    send(request.json(&change)).await.expect(StatusCode::OK);
    let path = format!("/api/pictures/{picture}");
    let like = format!("{path}/like");
    let storage = &server.app.store;
    let all_done = async || {
        until(async || {
            let next = storage.next_task(TaskKind::Webhook).await;
            next.expect("asked").is_none()
        })
        .await;
    };

    grace.put(&like).await.expect(StatusCode::OK);
    assert_eq!(received.recv().await, Some(json!("like")));
    all_done().await;
    // The outbox forgets finished tasks.
    let later = Timestamp::now() + Duration::from_mins(1);
    storage.prune(later, NOTHING).await.expect("pruned");
    grace.delete(&like).await.expect(StatusCode::OK);
    grace.put(&like).await.expect(StatusCode::OK);
    let said = json!({"text": "fine"});
    let said = grace.post(&format!("{path}/comments"), &said).await;
    said.expect(StatusCode::CREATED);
    assert_eq!(received.recv().await, Some(json!("comment")));
    all_done().await;
    assert!(received.try_recv().is_err());
    serving.abort();
}
