use std::convert::Infallible;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::routing::{get, post};
use greenroom_stage::placement::STREAK_LIKELY;
use greenroom_stage::{Placement, Priority, Stage, shed_on_this_loop};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

use crate::rig::{Client, get as fetch, patient, route, serve, whatever_it_takes, within};

type Gate = Arc<Mutex<mpsc::Receiver<()>>>;

/// Passes once a message is sent, or the sender is gone.
async fn pass(State(gate): State<Gate>) -> &'static str {
    let _ended = gate.lock().unwrap().recv();
    "passed"
}

/// A stage with one thread, and a place for one run that waits.
fn narrow() -> Stage {
    let builder = patient().threads(1..=1).blocking_threads_max(1);
    builder.queue_max(1).build().unwrap()
}

async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_cannot_be_served_in_time_is_refused_and_who_was_let_in_is_served() {
    within(async {
        let (release, gate) = mpsc::channel();
        let stage = narrow();
        let app = Router::new()
            .route("/overload/gate", get(pass).post(pass))
            .layer(Placement::on(&stage))
            .with_state(Arc::new(Mutex::new(gate)));
        let address = serve(app).await;
        let first = tokio::spawn(fetch(address, "/overload/gate"));
        until(|| stage.status().threads.working == 1 && stage.status().queue_len == 0).await;
        let second = tokio::spawn(fetch(address, "/overload/gate"));
        until(|| stage.status().queue_len == 1).await;

        let mut client = Client::connect(address).await;
        for _ in 0..100 {
            let refused = client.get("/overload/gate").await;
            assert_eq!(refused.status, 503);
            let seconds: u64 = refused.field("retry-after").unwrap().parse().unwrap();
            assert!(seconds >= 1);
            assert_eq!(refused.field("connection"), None, "it is kept");
        }
        drop(release);
        assert_eq!(first.await.unwrap().body, "passed");
        assert_eq!(second.await.unwrap().body, "passed");
        assert_eq!(client.get("/overload/gate").await.status, 200);
        let shed = route("/overload/gate").sheds;
        assert_eq!((shed, stage.status().sheds.queue_full), (100, 100));
    })
    .await;
}

/// The stage's thread is taken, its queue is not empty, and the short route has its response first.
#[tokio::test]
async fn a_route_that_is_likely_short_goes_before_work_that_waits() {
    within(async {
        let stage = patient().threads(1..=1).blocking_threads_max(1);
        let stage = stage.build().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&order);
        let app = Router::new().route(
            "/overload/short",
            get(|| async move { noted.lock().unwrap().push("short") }),
        );
        let address = serve(app.layer(whatever_it_takes(&stage))).await;
        for _ in 0..STREAK_LIKELY {
            assert_eq!(fetch(address, "/overload/short").await.status, 200);
        }
        order.lock().unwrap().clear();
        let (release, gate) = mpsc::channel::<()>();
        let occupying = stage.run(move || gate.recv());
        until(|| stage.status().queue_len == 0).await;
        let noted = Arc::clone(&order);
        let before = stage.run(move || noted.lock().unwrap().push("before"));
        let short = tokio::spawn(fetch(address, "/overload/short"));
        until(|| stage.status().queue_len == 2).await;
        drop(release);
        occupying.await.unwrap().unwrap_err();
        before.await.unwrap();
        assert_eq!(short.await.unwrap().status, 200);
        assert_eq!(*order.lock().unwrap(), ["short", "before"]);
    })
    .await;
}

/// A service of which one is ready at a time, as behind tower's limit of concurrency.
struct Limited {
    place: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Clone for Limited {
    fn clone(&self) -> Self {
        Self {
            place: Arc::clone(&self.place),
            permit: None,
        }
    }
}

impl Service<Request<Body>> for Limited {
    type Response = &'static str;
    type Error = Infallible;
    type Future = std::future::Ready<Result<&'static str, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.permit.is_none() {
            self.permit = Arc::clone(&self.place).try_acquire_owned().ok();
        }
        match self.permit {
            Some(_) => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    }

    fn call(&mut self, _request: Request<Body>) -> Self::Future {
        self.permit = None;
        std::future::ready(Ok("called"))
    }
}

/// Its connection, which has the service, may be idle for long.
#[tokio::test]
async fn a_request_that_its_loop_refuses_holds_nothing_of_its_service() {
    within(async {
        let stage = patient().threads(1..=1).build().unwrap();
        let limited = Limited {
            place: Arc::new(Semaphore::new(1)),
            permit: None,
        };
        let mut one = Placement::on(&stage).layer(limited);
        let mut other = one.clone();
        shed_on_this_loop(Some(Priority::Normal));
        let refused = one.ready().await.unwrap().call(Request::default()).await;
        assert_eq!(refused.unwrap().status(), 503);
        shed_on_this_loop(None);
        let called = other.ready().await.unwrap().call(Request::default()).await;
        assert_eq!(called.unwrap().status(), 200);
        drop(one);
    })
    .await;
}

#[tokio::test]
async fn a_function_is_refused_before_its_body_is_read() {
    within(async {
        let (release, gate) = mpsc::channel::<()>();
        let stage = narrow();
        let occupying = stage.run(move || gate.recv());
        until(|| stage.status().queue_len == 0).await;
        let waiting = stage.run(|| ());
        let app = Router::new().route("/overload/body", post(stage.handler(|body: String| body)));
        let mut client = Client::connect(serve(app).await).await;
        let head = "POST /overload/body HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n";
        client.send(head).await;
        assert_eq!(client.receive().await.status, 503);
        drop(release);
        occupying.await.unwrap().unwrap_err();
        waiting.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_work_of_a_client_that_left_is_dropped_from_the_queue() {
    within(async {
        let (release, gate) = mpsc::channel::<()>();
        let stage = narrow();
        let occupying = stage.run(move || gate.recv());
        until(|| stage.status().queue_len == 0).await;
        let app = Router::new()
            .route("/overload/left", get(|| async { "run" }))
            .layer(Placement::on(&stage));
        let address = serve(app).await;
        let leaving = tokio::spawn(fetch(address, "/overload/left"));
        until(|| stage.status().queue_len == 1).await;
        leaving.abort();
        until(|| stage.status().queue_len == 0).await;
        let stays = tokio::spawn(fetch(address, "/overload/left"));
        until(|| stage.status().queue_len == 1).await;
        drop(release);
        occupying.await.unwrap().unwrap_err();
        assert_eq!(stays.await.unwrap().body, "run");
        let status = stage.status();
        assert_eq!((status.cancelled, status.completed), (1, 2));
    })
    .await;
}
