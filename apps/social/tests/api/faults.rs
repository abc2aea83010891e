use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use social::config::StoreSettings;
use social::model::{Ticket, TicketPurpose, UserChange};

use crate::kit::app::{PASSWORD, TestApp, send};
use crate::kit::ferretdb::FerretDb;

/// Every response while the database is away says so, and when to try again; nothing hangs, and
/// what was acknowledged before is there when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_database_everything_is_unavailable_for_now() {
    let mut database = FerretDb::start().await;
    let server = TestApp::on(StoreSettings::Mongo(database.url("social"))).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let picture = ada.picture(&album).await;
    database.kill();

    let somebody = json!({"name": "grace", "email": "g@example.org", "password": PASSWORD});
    let who = json!({"name": "ada", "password": PASSWORD});
    for (method, path, body) in [
        (Method::POST, "/api/users", somebody),
        (Method::POST, "/api/sessions", who),
        (Method::POST, "/api/albums", json!({"title": "x"})),
        (Method::GET, &format!("/api/albums/{album}"), Value::Null),
        (
            Method::PUT,
            &format!("/api/pictures/{picture}/like"),
            Value::Null,
        ),
        (Method::GET, "/api/users/ada/pictures", Value::Null),
        (Method::GET, "/ready", Value::Null),
    ] {
        let request = ada.request(method.clone(), path).json(&body);
        let response = send(request).await;
        assert_eq!(
            response.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{method} {path}: {response:?}"
        );
        let detail = response.problem(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            detail,
            "the storage is not available at the moment; try again"
        );
        assert_eq!(response.header("retry-after"), "1");
    }
    server.client().get("/time").await.expect(StatusCode::OK);

    database.restart().await;
    // The driver notices by itself; until then the response stays the same.
    loop {
        let response = ada.get(&format!("/api/albums/{album}")).await;
        if response.status == StatusCode::OK {
            break;
        }
        response.problem(StatusCode::SERVICE_UNAVAILABLE);
    }
    ada.put(&format!("/api/pictures/{picture}/like"))
        .await
        .expect(StatusCode::OK);
}

/// The storage takes no change of a user for a moment, just when a link from a mail is followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_good_still_though_its_change_could_not_be_stored() {
    const NEW: &str = "new@example.org";
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join("social.db");
    let server = TestApp::on(StoreSettings::Sqlite(path.clone())).await;
    server.user("ada").await;
    let store = &server.app.store;
    let ada = store.user_by_name("ada").await.expect("found");
    let ada = ada.expect("she has signed up");
    let wants = UserChange {
        wanted_email: Some(NEW.to_owned()),
        ..UserChange::default()
    };
    store.update_user(ada.id, wants).await.expect("changed");
    let database = Connection::open(&path).expect("a database");
    let execute = |sql| database.execute_batch(sql).expect("good SQL");
    for (purpose, path, token) in [
        (TicketPurpose::ConfirmEmail, "/api/email/confirm", "a"),
        (TicketPurpose::ResetPassword, "/api/password/reset", "b"),
    ] {
        let token = token.repeat(43);
        let ticket = Ticket {
            token_hash: hex::encode(Sha256::digest(&token)),
            user: ada.id,
            purpose,
            email: NEW.to_owned(),
            generation: ada.generation,
            expires_at: Timestamp::now() + Duration::from_mins(10),
        };
        store.insert_ticket(&ticket).await.expect("kept");
        let mut body = json!({"token": token});
        if purpose == TicketPurpose::ResetPassword {
            body["password"] = json!("another password of some length");
        }
        execute(
            "CREATE TRIGGER away BEFORE UPDATE ON users
            BEGIN SELECT RAISE(ABORT, 'away'); END",
        );
        let failed = server.client().post(path, &body).await;
        assert!(failed.status.is_server_error(), "{failed:?}");
        execute("DROP TRIGGER away");
        let again = server.client().post(path, &body).await;
        again.expect(StatusCode::NO_CONTENT);
    }
}
