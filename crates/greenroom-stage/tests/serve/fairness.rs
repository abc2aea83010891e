//! Routes and clients share a stage: asserted by the order in which requests are begun.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};

use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use axum::routing::get;
use futures_util::future::join_all;
use greenroom_stage::{Client as Asker, ClientKey, Placement, Stage};

use crate::rig::{Client, Response, patient, serve, within};

#[derive(Clone, Default)]
struct Begun(Arc<Mutex<Vec<String>>>);

async fn note(State(begun): State<Begun>, uri: Uri) {
    begun.0.lock().unwrap().push(uri.path().to_owned());
}

/// Sends a request of a client with this name.
async fn ask(address: SocketAddr, path: &str, name: &str) -> Response {
    let mut client = Client::connect(address).await;
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nX-Client: {name}\r\n\r\n");
    client.send(&request).await;
    client.receive().await
}

fn by_name() -> ClientKey {
    ClientKey::from_fn(|parts| {
        let name = parts.headers.get("x-client")?;
        Some(Asker::named(name.to_str().ok()?))
    })
}

/// A stage whose only thread is held until the sender is dropped.
async fn held() -> (Stage, mpsc::Sender<()>) {
    let stage = patient().threads(1..=1).blocking_threads_max(1);
    let stage = stage.build().unwrap();
    let (release, released) = mpsc::channel::<()>();
    tokio::spawn(stage.run(move || released.recv().is_err()));
    until(&stage, 0).await;
    (stage, release)
}

async fn until(stage: &Stage, waiting: usize) {
    while stage.status().threads.working == 0 || stage.status().queue_len != waiting {
        tokio::task::yield_now().await;
    }
}

async fn begun_with_one_beside_a_flood(flood: [&str; 2], one: [&str; 2]) -> Vec<String> {
    let (stage, release) = held().await;
    let begun = Begun::default();
    let app = Router::new()
        .route("/fairness/{route}", get(note))
        .route("/fairness/other/{route}", get(note))
        .with_state(begun.clone())
        .layer(Placement::on(&stage).client_key(by_name()));
    let address = serve(app).await;
    let ask_all = |times, [path, name]: [&str; 2]| {
        let (path, name) = (path.to_owned(), name.to_owned());
        let asked = move |_| {
            let (path, name) = (path.clone(), name.clone());
            tokio::spawn(async move { ask(address, &path, &name).await.status })
        };
        (0..times).map(asked).collect::<Vec<_>>()
    };
    let flood = ask_all(20, flood);
    until(&stage, 20).await;
    let one = ask_all(1, one);
    until(&stage, 21).await;
    drop(release);
    for status in join_all(flood.into_iter().chain(one)).await {
        assert_eq!(status.unwrap(), 200);
    }
    begun.0.lock().unwrap().clone()
}

#[tokio::test]
async fn a_flood_on_one_route_does_not_hold_up_another_route_of_the_same_client() {
    within(async {
        let flood = ["/fairness/flood", "same"];
        let order = begun_with_one_beside_a_flood(flood, ["/fairness/other/one", "same"]).await;
        let place = order.iter().position(|path| path == "/fairness/other/one");
        assert!(place <= Some(1), "{order:?}");
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_one_client_does_not_hold_up_another_on_the_same_route() {
    within(async {
        let flood = ["/fairness/flood", "flood"];
        let order = begun_with_one_beside_a_flood(flood, ["/fairness/one", "polite"]).await;
        let place = order.iter().position(|path| path == "/fairness/one");
        assert!(place <= Some(1), "{order:?}");
    })
    .await;
}
