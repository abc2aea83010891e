use http::{Method, StatusCode};
use serde_json::{Value, json};
use social::config::StoreSettings;

use crate::kit::app::{Client, TestApp, TestResponse, send};

async fn patch(client: &Client, change: &Value) -> TestResponse {
    send(client.request(Method::PATCH, "/api/me").json(change)).await
}

pub(crate) async fn only_the_user_themself_sees_and_changes_everything(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    server
        .client()
        .get("/api/me")
        .await
        .problem(StatusCode::UNAUTHORIZED);
    let before: Value = ada.get("/api/me").await.json(StatusCode::OK);
    assert_eq!(before["email"], "somebody@example.org");
    assert!(before.get("password").is_none(), "{before}");

    let change = json!({"display": "Ada L.", "about": "Notes on engines.", "digest": false});
    let changed: Value = patch(&ada, &change).await.json(StatusCode::OK);
    let expected = (&json!("Ada L."), &json!("Notes on engines."), &json!(false));
    assert_eq!(
        (&changed["display"], &changed["about"], &changed["digest"]),
        expected
    );
    let seen: Value = server
        .client()
        .get("/api/users/ada")
        .await
        .json(StatusCode::OK);
    assert_eq!(seen["about"], "Notes on engines.");

    let nothing: Value = patch(&ada, &json!({})).await.json(StatusCode::OK);
    assert_eq!(nothing, changed);
    assert_eq!(
        patch(&ada, &json!({"display": " "})).await.field(),
        "display"
    );
    let detail = patch(&ada, &json!({"name": "eve"}))
        .await
        .problem(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(detail.contains("unknown field `name`"), "{detail}");
}

pub(crate) async fn a_webhook_is_an_address_with_tls(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    for webhook in ["nonsense", "http://example.org/hook", "ftp://example.org"] {
        assert_eq!(
            patch(&ada, &json!({"webhook": webhook})).await.field(),
            "webhook"
        );
    }
    let hook = "https://example.org/hook";
    let set: Value = patch(&ada, &json!({"webhook": hook}))
        .await
        .json(StatusCode::OK);
    assert_eq!(set["webhook"], hook);
    let kept: Value = patch(&ada, &json!({"about": "x"}))
        .await
        .json(StatusCode::OK);
    assert_eq!(kept["webhook"], hook);
    let removed: Value = patch(&ada, &json!({"webhook": null}))
        .await
        .json(StatusCode::OK);
    assert_eq!(removed["webhook"], Value::Null);
}

pub(crate) async fn a_key_is_shown_once_and_deleted(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let grace = server.user("grace").await;
    let made = ada
        .post("/api/me/keys", &json!({"name": "my script"}))
        .await;
    let made: Value = made.json(StatusCode::CREATED);
    let secret = hex::decode(made["secret"].as_str().expect("a text")).expect("digits");
    assert_eq!(secret.len(), 32);

    let keys: Value = ada.get("/api/me/keys").await.json(StatusCode::OK);
    assert_eq!(
        (&keys[0]["id"], &keys[0]["name"]),
        (&made["id"], &json!("my script"))
    );
    assert!(keys[0].get("secret").is_none(), "{keys}");

    let path = format!("/api/me/keys/{}", made["id"].as_str().expect("a text"));
    grace.delete(&path).await.problem(StatusCode::NOT_FOUND);
    ada.delete(&path).await.expect(StatusCode::NO_CONTENT);
    ada.delete(&path).await.problem(StatusCode::NOT_FOUND);
    let keys: Value = ada.get("/api/me/keys").await.json(StatusCode::OK);
    assert_eq!(keys, json!([]));
}

pub(crate) async fn a_user_has_twenty_keys_at_most(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    for _ in 0..20 {
        let made = ada.post("/api/me/keys", &json!({"name": "one"})).await;
        made.expect(StatusCode::CREATED);
    }
    let made = ada
        .post("/api/me/keys", &json!({"name": "one too many"}))
        .await;
    made.problem(StatusCode::CONFLICT);
}

pub(crate) async fn the_bell_tells_what_others_did_until_it_was_seen(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let picture = ada.picture(&ada.album("mine").await).await;
    ada.put(&format!("/api/pictures/{picture}/like"))
        .await
        .expect(StatusCode::OK);
    let path = format!("/api/pictures/{picture}");
    grace
        .put(&format!("{path}/like"))
        .await
        .expect(StatusCode::OK);
    let comment = grace
        .post(&format!("{path}/comments"), &json!({"text": "fine"}))
        .await;
    comment.expect(StatusCode::CREATED);

    let bell: Value = ada.get("/api/me/bell").await.json(StatusCode::OK);
    assert_eq!(
        (&bell["unseen"], &bell["seq"]),
        (&json!(2), &json!(2)),
        "{bell}"
    );
    let kinds: Vec<&Value> = bell["entries"].as_array().expect("a list").iter().collect();
    assert_eq!(
        (&kinds[0]["kind"], &kinds[0]["by"]),
        (&json!("comment"), &json!("grace"))
    );
    assert_eq!(
        (&kinds[1]["kind"], &kinds[1]["picture"]),
        (&json!("like"), &json!(picture))
    );

    let see = |seen: u64| {
        let request = ada.request(Method::PUT, "/api/me/bell");
        send(request.json(&json!({"seen": seen})))
    };
    for (seen, unseen) in [(1, 1), (0, 1), (u64::MAX, 0)] {
        let bell: Value = see(seen).await.json(StatusCode::OK);
        assert_eq!(bell["unseen"], unseen, "after {seen}");
    }
    // A repeated like after a while is no news.
    grace
        .delete(&format!("{path}/like"))
        .await
        .expect(StatusCode::OK);
    let again: Value = grace
        .put(&format!("{path}/like"))
        .await
        .json(StatusCode::OK);
    assert_eq!(
        (&again["liked"], &again["likes"]),
        (&json!(true), &json!(2))
    );
    let bell: Value = ada.get("/api/me/bell").await.json(StatusCode::OK);
    assert_eq!(
        (&bell["unseen"], &bell["seq"]),
        (&json!(0), &json!(2)),
        "{bell}"
    );
    // A position beyond the end does not hide later events.
    let comment = grace
        .post(&format!("{path}/comments"), &json!({"text": "really"}))
        .await;
    comment.expect(StatusCode::CREATED);
    let bell: Value = ada.get("/api/me/bell").await.json(StatusCode::OK);
    assert_eq!(bell["unseen"], 1);
}

pub(crate) async fn browsers_subscribe_with_the_key_of_the_server(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let key: Value = server
        .client()
        .get("/api/push-key")
        .await
        .json(StatusCode::OK);
    let browser = |p256dh: &str| {
        json!({
            "endpoint": "https://push.example.org/ada",
            "expirationTime": null,
            "keys": {"p256dh": p256dh, "auth": "AAAAAAAAAAAAAAAAAAAAAA"},
        })
    };
    let point = format!("B{}", "A".repeat(86));
    let added = ada.post("/api/me/push", &browser(&point)).await;
    if key["key"].is_null() {
        added.problem(StatusCode::CONFLICT);
        return;
    }
    added.expect(StatusCode::NO_CONTENT);
    assert_eq!(
        ada.post("/api/me/push", &browser("AAAA")).await.field(),
        "p256dh"
    );
    let request = ada.request(Method::DELETE, "/api/me/push");
    send(request.json(&browser(&point)))
        .await
        .expect(StatusCode::NO_CONTENT);
}
