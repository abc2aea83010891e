use http::{Method, StatusCode};
use serde_json::{Value, json};
use social::config::StoreSettings;

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
