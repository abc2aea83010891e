use std::net::SocketAddr;
use std::pin::pin;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Uri};
use axum::routing::{any, get};
use greenroom_stage::placement::STREAK_FIRST;
use greenroom_stage::{Client as Asker, ClientKey, Placed, Placement};
use http_body_util::BodyExt;
use tokio::sync::Notify;
use tower::{Layer, ServiceExt};
use tracing::Instrument;

use crate::rig::{Client, patient, route, serve, whatever_it_takes, within};

/// Sends requests until the route is inline, which its placement makes independent of the machine's
/// speed.
async fn until_inline(address: SocketAddr, path: &str) -> Client {
    let mut client = Client::connect(address).await;
    for _ in 0..STREAK_FIRST {
        assert_eq!(client.get(path).await.status, 200);
    }
    assert_eq!(route(path).placed, Placed::AutoInline);
    client
}

/// The run is long until the watchdog has seen it, however slow the machine is.
#[tokio::test]
async fn a_route_proven_short_runs_inline_and_a_long_run_sends_it_back() {
    within(async {
        let handler = |uri: Uri| async move {
            while uri.query() == Some("long") && route("/moving/short").stalls == 0 {
                thread::yield_now();
            }
            thread::current().name().unwrap_or("loop").to_owned()
        };
        let app = Router::new().route("/moving/short", get(handler));
        let stage = patient().threads(1..=1).build().unwrap();
        let address = serve(app.layer(whatever_it_takes(&stage))).await;
        let mut client = Client::connect(address).await;
        assert_eq!(client.get("/moving/short").await.body, "serve-0");
        assert_eq!(route("/moving/short").placed, Placed::AutoStaged);

        let mut client = until_inline(address, "/moving/short").await;
        assert_eq!(client.get("/moving/short?long").await.body, "loop");
        assert_eq!(route("/moving/short").placed, Placed::AutoStaged);
        assert_eq!(client.get("/moving/short").await.body, "serve-0");
        assert_eq!(route("/moving/short").moves, 2);
    })
    .await;
}

/// Nobody knows for how long they would have computed.
#[tokio::test]
async fn runs_that_are_given_up_do_not_prove_a_route_short() {
    within(async {
        let begun = Arc::new(Notify::new());
        let (tell, dropped) = (Arc::clone(&begun), Arc::new(()));
        let kept = Arc::clone(&dropped);
        let handler = move || async move {
            tell.notify_one();
            std::future::pending::<()>().await;
            drop(kept);
        };
        let app = Router::new().route("/moving/given-up", get(handler));
        let stage = patient().threads(1..=1).build().unwrap();
        let app = app.layer(whatever_it_takes(&stage));
        let held = Arc::strong_count(&dropped);
        for _ in 0..2 * STREAK_FIRST {
            let request = Request::get("/moving/given-up").body(Body::empty());
            let mut asked = pin!(app.clone().oneshot(request.unwrap()));
            tokio::select! {
                _ = &mut asked => panic!("it never ends"),
                () = begun.notified() => {}
            }
        }
        while Arc::strong_count(&dropped) > held {
            tokio::task::yield_now().await;
        }
        assert_eq!(route("/moving/given-up").placed, Placed::AutoStaged);
    })
    .await;
}

#[tokio::test]
async fn the_watchdog_sends_a_route_back_while_it_still_runs() {
    within(async {
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let handler = move |uri: Uri| async move {
            if uri.query() == Some("long") {
                let _ended = gate.lock().unwrap().recv();
            }
            "response"
        };
        let app = Router::new().route("/moving/stalls", get(handler));
        let stage = patient().build().unwrap();
        let address = serve(app.layer(whatever_it_takes(&stage))).await;
        let mut client = until_inline(address, "/moving/stalls").await;
        client
            .send("GET /moving/stalls?long HTTP/1.1\r\nHost: test\r\n\r\n")
            .await;
        while route("/moving/stalls").placed == Placed::AutoInline {
            tokio::task::yield_now().await;
        }
        assert!(route("/moving/stalls").stalls >= 1);
        drop(release);
        assert_eq!(client.receive().await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_route_that_blocks_in_place_costs_one_500_and_stays_on_its_stage() {
    within(async {
        let handler = |uri: Uri| async move {
            let name = || thread::current().name().unwrap_or("loop").to_owned();
            match uri.query() {
                Some("block") => tokio::task::block_in_place(name),
                _ => name(),
            }
        };
        let app = Router::new().route("/moving/in_place", get(handler));
        let stage = patient().threads(1..=1).build().unwrap();
        let address = serve(app.layer(whatever_it_takes(&stage))).await;
        let mut client = Client::connect(address).await;
        assert_eq!(client.get("/moving/in_place?block").await.body, "serve-0");
        let mut client = until_inline(address, "/moving/in_place").await;
        assert!(!route("/moving/in_place").is_pinned);
        assert_eq!(client.get("/moving/in_place?block").await.status, 500);
        assert!(route("/moving/in_place").is_pinned);
        for _ in 0..4 * STREAK_FIRST {
            let response = client.get("/moving/in_place?block").await;
            assert_eq!((response.status, &*response.body), (200, "serve-0"));
        }
    })
    .await;
}

/// Uncontended, so no run is long by it.
#[tokio::test]
async fn a_route_that_takes_a_lock_by_blocking_costs_one_500_and_stays_on_its_stage() {
    within(async {
        let lock = Arc::new(tokio::sync::Mutex::new(()));
        let handler = move |uri: Uri| async move {
            if uri.query() == Some("block") {
                drop(lock.blocking_lock());
            }
            thread::current().name().unwrap_or("loop").to_owned()
        };
        let app = Router::new().route("/moving/blocking_lock", get(handler));
        let stage = patient().threads(1..=1).build().unwrap();
        let address = serve(app.layer(whatever_it_takes(&stage))).await;
        let path = "/moving/blocking_lock?block";
        let mut client = Client::connect(address).await;
        assert_eq!(client.get(path).await.body, "serve-0");
        let mut client = until_inline(address, "/moving/blocking_lock").await;
        assert_eq!(client.get(path).await.status, 500);
        for _ in 0..4 * STREAK_FIRST {
            let response = client.get(path).await;
            assert_eq!((response.status, &*response.body), (200, "serve-0"));
        }
    })
    .await;
}

/// Wherever the route runs.
#[tokio::test]
async fn a_handler_has_the_span_and_the_client_of_its_caller() {
    // For the stage's threads too; it prints nothing.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
    within(async {
        let key = ClientKey::from_fn(|_| Some(Asker::named("ada")));
        let handler = || async {
            let span = tracing::Span::current()
                .metadata()
                .map(tracing::Metadata::name);
            format!("{span:?} {}", Asker::current())
        };
        let stage = patient().threads(1..=1).build().unwrap();
        let app = Router::new()
            .route("/moving/span", get(handler))
            .layer(whatever_it_takes(&stage).client_key(key));
        for _ in 0..2 * STREAK_FIRST {
            let request = Request::get("/moving/span").body(Body::empty()).unwrap();
            let span = tracing::info_span!("of_the_request");
            let response = app.clone().oneshot(request).instrument(span).await;
            let body = response.unwrap().into_body().collect().await.unwrap();
            assert_eq!(body.to_bytes(), "Some(\"of_the_request\") ada");
        }
        assert_eq!(route("/moving/span").placed, Placed::AutoInline);
    })
    .await;
}

#[tokio::test]
async fn an_inline_route_stays_and_is_still_watched() {
    within(async {
        let handler = || async {
            while route("/moving/inline").stalls == 0 {
                thread::yield_now();
            }
            "seen"
        };
        let app = Router::new().route("/moving/inline", any(handler));
        let address = serve(app.layer(Placement::inline())).await;
        let response = Client::connect(address).await.get("/moving/inline").await;
        assert_eq!(response.body, "seen");
        assert_eq!(route("/moving/inline").placed, Placed::Inline);
    })
    .await;
}

/// Each connection of `axum::serve` calls `layer()` anew; the route is the same.
#[tokio::test]
async fn methods_and_paths_are_apart_and_connections_are_not() {
    within(async {
        let app = Router::new()
            .route("/moving/a/{id}", any(|| async { "a" }))
            .route("/moving/b", get(|| async { "b" }));
        let stage = patient().build().unwrap();
        let address = serve(app.layer(Placement::auto_on(&stage))).await;
        for id in 0..3 {
            let mut client = Client::connect(address).await;
            client.get(&format!("/moving/a/{id}")).await;
            let delete = format!("DELETE /moving/a/{id} HTTP/1.1\r\nHost: test\r\n\r\n");
            client.send(&delete).await;
            client.receive().await;
            client.get("/moving/b").await;
        }
        let status = greenroom_stage::status();
        let routes = status
            .routes
            .iter()
            .filter(|route| route.path.starts_with("/moving/a"));
        let mut routes: Vec<_> = routes
            .map(|route| (&*route.method, route.poll_time.count))
            .collect();
        routes.sort_unstable();
        assert_eq!(routes, [("DELETE", 3), ("GET", 3)]);
        assert_eq!(route("/moving/b").poll_time.count, 3);
        let json = serde_json::to_value(&status).unwrap();
        assert!(
            json["routes"][0]["poll_time"]["p99_micros"].is_u64(),
            "{json}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_tower_service_without_a_router_is_placed_too() {
    within(async {
        let stage = patient().threads(1..=1).build().unwrap();
        let service = tower::service_fn(|_: axum::http::Request<()>| async {
            let name = thread::current().name().map(str::to_owned);
            Ok::<_, std::convert::Infallible>(name.unwrap_or_default())
        });
        let service = Placement::on(&stage).layer(service);
        let response = service.oneshot(axum::http::Request::new(())).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), 100)
            .await
            .unwrap();
        assert_eq!(body, "serve-0");
    })
    .await;
}

#[tokio::test]
async fn a_service_outside_of_a_router_has_the_key_that_it_is_given() {
    within(async {
        let hello = tower::service_fn(|_: axum::extract::Request| async {
            Ok::<_, std::convert::Infallible>(axum::response::Response::new("hello".to_owned()))
        });
        let stage = patient().build().unwrap();
        let placed = Placement::auto_on(&stage)
            .key("moving service")
            .layer(hello);
        let request = axum::extract::Request::new(axum::body::Body::empty());
        placed.clone().oneshot(request).await.unwrap();
        assert_eq!(route("moving service").placed, Placed::AutoStaged);
    })
    .await;
}
