//! Clients behind slow links.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Request;
use http_body::Frame;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::SECOND;
use super::rig::{Client, Rig, client, receive, uri};
use crate::panics::Log;
use crate::rig::{Dropped, app, local, streamed};

/// Datagrams that wait before a slow link; more are lost.
const QUEUE_MAX: usize = 16;
/// Datagrams up to this length pass at once, and those of handshakes with them.
const SMALL_BYTES: usize = 300;

/// Passes on datagrams between a client, whose address it returns, and `server`: to the client one
/// each `pause` of those that are not small, once `begin` was sent.
async fn slow_link(server: SocketAddr, pause: Duration) -> (SocketAddr, mpsc::Sender<()>) {
    let ours = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let theirs = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    theirs.connect(server).await.unwrap();
    let address = ours.local_addr().unwrap();
    let (begin, mut told) = mpsc::channel(1);
    spawn_local(async move {
        let (mut client, mut is_slow) = (None, false);
        let mut queue = VecDeque::new();
        let mut next = interval(pause);
        next.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut up, mut down) = (vec![0; 2_000], vec![0; 2_000]);
        loop {
            tokio::select! {
                biased;
                received = ours.recv_from(&mut up) => {
                    let (length, from) = received.unwrap();
                    client = Some(from);
                    theirs.send(&up[..length]).await.unwrap();
                }
                received = theirs.recv(&mut down) => {
                    let datagram = &down[..received.unwrap()];
                    if !is_slow || datagram.len() <= SMALL_BYTES {
                        ours.send_to(datagram, client.unwrap()).await.unwrap();
                    } else if queue.len() < QUEUE_MAX {
                        queue.push_back(datagram.to_vec());
                    }
                }
                Some(()) = told.recv() => is_slow = true,
                _ = next.tick() => {
                    if let Some(datagram) = queue.pop_front() {
                        ours.send_to(&datagram, client.unwrap()).await.unwrap();
                    }
                }
            }
        }
    });
    (address, begin)
}

/// Has a client ask over a link that passes on a datagram each `pause`, for a response that QUIC
/// takes at once: when the response was dropped, and the bytes that the client had. The access log
/// tells whether it had all.
async fn ask_slowly(pause: Duration) -> (Duration, Option<usize>) {
    Log::capture();
    let (told, mut dropped) = mpsc::unbounded_channel();
    let app = app(move |_| {
        let dropped = Dropped(told.clone());
        async {
            let part = Bytes::from(vec![b'r'; 200_000]);
            // Dropped with the body, which is kept to the end of the stream.
            let parts = stream::iter([Ok(Frame::data(part))]).inspect(move |_| {
                let _kept = &dropped;
            });
            Ok(streamed(parts))
        }
    });
    let server = Rig::with(app, |builder| builder.access_log(true));
    let (address, begin) = slow_link(server.address, pause).await;
    let connecting = Client::connect(address, client());
    let client = Box::pin(connecting).await.unwrap();
    let head = Request::get(uri("/")).body(()).unwrap();
    begin.send(()).await.unwrap();
    let since = Instant::now();
    let mut stream = client.begin(head).await.unwrap();
    stream.finish().await.unwrap();
    let response = timeout(500 * SECOND, receive(&mut stream)).await.unwrap();
    let at = dropped.recv().await.unwrap() - since;
    let taken = response.ok().map(|response| response.body.len());
    let logged = Log::line(&["greenroom::access", "target=/ "]);
    assert_eq!(logged.contains(" cut=true"), taken.is_none(), "{logged}");
    (at, taken)
}

#[tokio::test(start_paused = true)]
async fn a_client_may_take_the_end_of_a_response_as_slowly_as_the_rest() {
    local(async {
        let (at, taken) = ask_slowly(Duration::from_millis(900)).await;
        assert_eq!(taken, Some(200_000));
        // An idle connection had been closed before.
        assert!(at > 110 * SECOND, "{at:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_the_end_of_a_response_below_the_rate_is_reset() {
    local(async {
        let (at, taken) = ask_slowly(4 * SECOND).await;
        assert_eq!(taken, None);
        // At 1 kB a second 256 KiB take 262 s, and it may be behind by 30 s.
        assert!((292 * SECOND..296 * SECOND).contains(&at), "{at:?}");
    })
    .await;
}
