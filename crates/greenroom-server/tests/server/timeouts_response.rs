//! The pace at which a client takes a response: 1,000 bytes a second, from which it may be behind
//! by 30 s, as long as there is something to send.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use greenroom_server::Limits;
use http_body::Frame;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::{Instant, sleep};

use crate::client::{Client, get};
use crate::rig::{Dropped, Rig, app, endless, local, streamed};

const SECOND: Duration = Duration::from_secs(1);

/// A server of an endless body, and what is told when the body is dropped.
fn endless_at(response_rate_min: u64) -> (Rig, mpsc::UnboundedReceiver<Instant>) {
    let (tell, told) = mpsc::unbounded_channel();
    let limits = Limits {
        response_rate_min,
        ..Limits::default()
    };
    let app = app(move |_| {
        let kept = Dropped(tell.clone());
        async { Ok(streamed(endless(kept))) }
    });
    (Rig::with(app, |builder| builder.limits(limits)), told)
}

async fn asked(server: &Rig) -> Client {
    let mut client = server.connect().await;
    client.send(get("/")).await;
    client
}

/// Asserts that a client that asks by this request, and takes half the rate, is disconnected.
pub(crate) async fn assert_disconnected_at_half_the_rate(request: String) {
    local(async {
        let (server, mut told) = endless_at(50_000);
        let mut client = server.connect().await;
        client.send(request).await;
        let since = Instant::now();
        // 25,000 bytes a second, never 30 s without a byte: half of each second is lost.
        while told.try_recv().is_err() && since.elapsed() < 300 * SECOND {
            client.read_exactly(500_000).await;
            sleep(20 * SECOND).await;
        }
        let elapsed = since.elapsed();
        assert!(
            (30 * SECOND..130 * SECOND).contains(&elapsed),
            "{elapsed:?}"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_half_the_rate_is_disconnected_after_some_60_s() {
    assert_disconnected_at_half_the_rate(get("/")).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_keeps_to_the_rate_may_take_any_time() {
    local(async {
        for response_rate_min in [0, 1_000, 20_000] {
            let (server, mut told) = endless_at(response_rate_min);
            let mut client = asked(&server).await;
            for _ in 0..100 {
                sleep(20 * SECOND).await;
                assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
                client.read_exactly(500_000).await;
            }
        }
    })
    .await;
}

/// Asserts that a client that takes so much of a body, and then nothing, is given up after 30 s.
pub(crate) async fn assert_given_up(
    (server, mut told): (Rig, mpsc::UnboundedReceiver<Instant>),
    taken: usize,
) {
    let mut client = asked(&server).await;
    client.read_exactly(taken).await;
    let since = Instant::now();
    told.recv().await.unwrap();
    let elapsed = since.elapsed();
    assert!((30 * SECOND..31 * SECOND).contains(&elapsed), "{elapsed:?}");
}

/// Whatever it took before.
#[tokio::test(start_paused = true)]
async fn a_fast_client_gains_nothing_in_advance() {
    local(async { assert_given_up(endless_at(1_000), 100_000_000).await }).await;
}

#[tokio::test(start_paused = true)]
async fn events_that_are_few_have_no_rate_to_keep() {
    local(async {
        let server = Rig::with(
            app(|_| async {
                let events = stream::iter(0..200).then(|_| async {
                    sleep(60 * SECOND).await;
                    Ok(Frame::data(Bytes::from_static(b"event")))
                });
                Ok(streamed(events))
            }),
            |builder| builder,
        );
        let mut client = asked(&server).await;
        assert_eq!(client.response().await.text(), "event".repeat(200));
    })
    .await;
}
