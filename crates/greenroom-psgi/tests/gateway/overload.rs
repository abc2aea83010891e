//! More requests than there are workers for.

use std::time::Duration;

use futures_util::future::join_all;
use http::{Method, StatusCode};
use tokio::io::AsyncWriteExt;

use crate::load::{Client, prove_short, until};
use crate::notes::{self, let_go, times_noted, until_noted};
use crate::rig::{Response, Rig, text, within};

/// The places in the queue.
const PLACES: usize = 4;

/// The requests beyond them.
const BEYOND: usize = 6;

fn is_refused(response: &Response) -> bool {
    let seconds = response.headers().get("retry-after");
    let seconds = seconds.and_then(|seconds| seconds.to_str().ok()?.parse::<u32>().ok());
    response.status() == StatusCode::SERVICE_UNAVAILABLE
        && seconds.is_some_and(|seconds| seconds > 0)
}

#[tokio::test]
async fn who_finds_the_queue_full_is_refused_at_once_and_the_rest_are_served() {
    within(async {
        // One client's requests of one route leave as many places free as they take.
        let rig = Rig::with(notes::APP, |builder| builder.queue_max(2 * PLACES)).await;
        let held = rig.get("/x?hold");
        let flood = async {
            until_noted(&rig, "GET hold").await;
            let waiting = join_all((0..PLACES).map(|number| {
                let (rig, path) = (&rig, format!("/x?{number}"));
                async move { rig.get(&path).await }
            }));
            let refused = async {
                until(|| rig.gateway.status().queue.queue_len == PLACES).await;
                for _ in 0..BEYOND {
                    assert!(is_refused(&rig.get("/x?beyond").await));
                }
                assert_eq!(rig.gateway.status().queue.sheds.queue_full, BEYOND as u64);
                let_go(&rig);
            };
            tokio::join!(waiting, refused).0
        };
        let (held, waited) = tokio::join!(held, flood);
        assert_eq!(held.status(), StatusCode::OK);
        for (number, response) in waited.iter().enumerate() {
            assert!(text(response).starts_with(&format!("{number} ")));
        }
        assert_eq!(times_noted(&rig, "GET beyond"), 0);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn who_has_waited_long_enough_is_refused_and_not_worked_for() {
    within(async {
        let wait = Duration::from_millis(100);
        let rig = Rig::with(notes::APP, |builder| builder.queue_wait_max(wait)).await;
        let held = rig.get("/x?hold");
        let late = async {
            until_noted(&rig, "GET hold").await;
            let late = join_all((0..PLACES).map(|_| rig.get("/x?late"))).await;
            assert!(late.iter().all(is_refused), "{late:?}");
            let_go(&rig);
        };
        let (held, ()) = tokio::join!(held, late);
        assert_eq!(held.status(), StatusCode::OK);
        // The held run counts as long, so one may be rejected; soon none is.
        while rig.get("/x?after").await.status() != StatusCode::OK {}
        assert_eq!(times_noted(&rig, "GET late"), 0);
        rig.end().await;
    })
    .await;
}

async fn post_and_leave(rig: &Rig, has_come: impl Fn() -> bool) {
    let mut stream = rig.connect().await;
    let asked = b"POST /x?left HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    stream.write_all(asked).await.unwrap();
    until(has_come).await;
}

#[tokio::test]
async fn who_leaves_the_queue_is_not_worked_for() {
    within(async {
        let rig = Rig::serve(notes::APP).await;
        let queued = || rig.gateway.status().queue.queue_len;
        let held = rig.get("/x?hold");
        let leaving = async {
            until_noted(&rig, "GET hold").await;
            post_and_leave(&rig, || queued() == 1).await;
            until(|| queued() == 0).await;
            let_go(&rig);
        };
        let (held, ()) = tokio::join!(held, leaving);
        assert_eq!(held.status(), StatusCode::OK);
        assert_eq!(rig.get("/x?after").await.status(), StatusCode::OK);
        assert_eq!(times_noted(&rig, "POST left"), 0);
        assert_eq!(times_noted(&rig, "GET after"), 1);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn who_leaves_a_worker_before_it_began_is_not_worked_for() {
    within(async {
        let rig = Rig::serve(notes::APP).await;
        let routes = [(Method::GET, "/x?first"), (Method::POST, "/x?first")];
        prove_short(&rig, &rig.gateway, &routes).await;
        let mut holder = Client::new(&rig);
        let held = holder.ask(Method::GET, "/x?hold");
        let leaving = async {
            until_noted(&rig, "GET hold").await;
            let has_come = || {
                let status = rig.gateway.status();
                status.workers[0].running as usize + status.queue.queue_len == 2
            };
            post_and_leave(&rig, has_come).await;
            // A client that came later and waits in the queue is missed later too, but visibly.
            for _ in 0..2 {
                get_and_leave(&rig).await;
            }
            let_go(&rig);
        };
        let (held, ()) = tokio::join!(held, leaving);
        assert_eq!(held.status(), StatusCode::OK);
        assert_eq!(rig.get("/x?after").await.status(), StatusCode::OK);
        assert_eq!(times_noted(&rig, "POST left"), 0);
        rig.end().await;
    })
    .await;
}

/// Waits in the queue, because its route has not proven short, until the server has missed the
/// client.
async fn get_and_leave(rig: &Rig) {
    let queued = || rig.gateway.status().queue.queue_len;
    let mut stream = rig.connect().await;
    let asked = b"GET /another?queued HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(asked).await.unwrap();
    until(|| queued() == 1).await;
    drop(stream);
    until(|| queued() == 0).await;
}
