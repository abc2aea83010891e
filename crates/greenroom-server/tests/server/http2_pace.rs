//! The pace at which a client over HTTP/2 takes a response: 1,000 bytes a second, as over HTTP/1,
//! from which each stream and the connection may be behind by 30 s, as long as it is the client
//! that is waited for.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use greenroom_server::{BoxError, Limits, RequestBody};
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream};
use http::Request;
use http_body::Frame;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use crate::http2_frames::{DATA, Frames, GOAWAY, RST_STREAM};
use crate::over;
use crate::rig::{Reply, Rig, app, assert_elapsed, local, streamed, text};

const SECOND: Duration = Duration::from_secs(1);
const WINDOW_MAX: u32 = 0x7fff_ffff;

type Part = Result<Frame<Bytes>, BoxError>;

/// Bytes each so often, without end.
fn parts(bytes: usize, pause: Duration) -> impl futures_util::Stream<Item = Part> {
    stream::repeat(Bytes::from(vec![b'p'; bytes])).then(move |part| async move {
        if pause > Duration::ZERO {
            sleep(pause).await;
        }
        Ok(Frame::data(part))
    })
}

async fn handler(request: Request<RequestBody>) -> Reply {
    match request.uri().path() {
        "/endless" => Ok(streamed(parts(60_000, Duration::ZERO))),
        "/slow" => Ok(streamed(parts(2_000, 20 * SECOND).take(100))),
        "/events" => Ok(streamed(parts(5, 60 * SECOND).take(100))),
        "/late" => {
            sleep(300 * SECOND).await;
            Ok(text(vec![b'l'; 100_000]))
        }
        path => Ok(text(path.to_owned())),
    }
}

fn serve(response_rate_min: u64) -> Rig {
    let limits = Limits {
        response_rate_min,
        ..Limits::default()
    };
    Rig::with(app(handler), |builder| builder.limits(limits))
}

/// A client of `h2`, each of whose streams has such a window, which opens when half of it was
/// taken.
pub(crate) async fn client(server: &Rig, window: u32) -> SendRequest<Bytes> {
    let stream = over::connect(&server.path).await;
    let mut builder = Builder::new();
    builder
        .initial_window_size(window)
        .initial_connection_window_size(WINDOW_MAX);
    let (send, connection) = builder.handshake(stream).await.unwrap();
    spawn_local(async move {
        // Its end is seen by its streams.
        let _ended = connection.await;
    });
    send
}

async fn get(client: &SendRequest<Bytes>, path: &str) -> RecvStream {
    let mut client = client.clone().ready().await.unwrap();
    let uri = format!("http://test{path}");
    let request = Request::get(uri).body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    response.await.unwrap().into_body()
}

/// Takes as much as the window has, and opens it for as much again after such a pause: how the
/// stream was reset, or `None` if it was not for so long.
async fn take(
    body: &mut RecvStream,
    window: usize,
    pause: Duration,
    patience: Duration,
) -> Option<Reason> {
    let since = Instant::now();
    while since.elapsed() < patience {
        let mut taken = 0;
        while taken < window {
            match body.data().await? {
                Ok(data) => taken += data.len(),
                Err(error) => return error.reason(),
            }
        }
        sleep(pause).await;
        // A stream that was reset meanwhile has none.
        let _released = body.flow_control().release_capacity(taken);
    }
    None
}

/// The body's length, taken as fast as it comes.
async fn length(mut body: RecvStream) -> usize {
    let mut length = 0;
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        length += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    length
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_client_takes_too_little_is_reset_and_its_connection_goes_on() {
    local(async {
        let server = serve(1_000);
        // At 800 bytes a second, 0.2 s are lost in each.
        for (window, seconds) in [(6, 30..33), (1_200, 130..170)] {
            let client = client(&server, window).await;
            let since = Instant::now();
            let mut body = get(&client, "/endless").await;
            let pause = Duration::from_millis(1_500);
            let reset = take(&mut body, window as usize, pause, 1_000 * SECOND).await;
            assert!(reset.is_some(), "it goes on");
            let elapsed = since.elapsed().as_secs();
            assert!(seconds.contains(&elapsed), "{window}: {elapsed}");
            assert_eq!(length(get(&client, "/still").await).await, "/still".len());
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_client_keeps_to_the_rate_may_take_any_time_beside_one_that_does_not() {
    local(async {
        let server = serve(1_000);
        let client = client(&server, 1_600).await;
        let (mut good, mut bad) = (
            get(&client, "/endless").await,
            get(&client, "/endless").await,
        );
        let pause = Duration::from_millis(1_500);
        let (good, bad) = tokio::join!(
            take(&mut good, 1_600, pause, 1_000 * SECOND),
            take(&mut bad, 1_600, 4 * pause, 1_000 * SECOND)
        );
        assert_eq!(good, None);
        assert!(bad.is_some());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_client_took_before_is_no_credit() {
    local(async {
        let server = serve(1_000);
        let client = client(&server, 65_535).await;
        let mut body = get(&client, "/endless").await;
        let mut taken = 0;
        while taken < 10_000_000 {
            let data = body.data().await.unwrap().unwrap();
            taken += data.len();
            body.flow_control().release_capacity(data.len()).unwrap();
        }
        let since = Instant::now();
        while let Some(Ok(_)) = body.data().await {}
        assert_elapsed(since, 30 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_application_may_take_any_time() {
    local(async {
        let server = serve(1_000);
        for window in [10, 1_000, 65_535] {
            let client = client(&server, window).await;
            let slow = async { length(get(&client, "/slow").await).await };
            let events = async { length(get(&client, "/events").await).await };
            let late = async { length(get(&client, "/late").await).await };
            let lengths = tokio::join!(slow, events, late);
            assert_eq!(lengths, (200_000, 500, 100_000), "{window}");
        }
    })
    .await;
}

/// So many streams with windows that are open, of which the connection's is opened every 1.5 s by
/// so many bytes: what else came than data within 1,000 s.
async fn through_a_narrow_connection(server: &Rig, bytes: u32) -> Vec<u8> {
    let mut client = Frames::with_window(&server.path, WINDOW_MAX).await;
    for number in 0..10 {
        client.get(2 * number + 1, "/endless").await;
    }
    let mut window = 65_535;
    let mut kinds = Vec::new();
    let since = Instant::now();
    while since.elapsed() < 1_000 * SECOND {
        while window > 0 {
            let Some(frame) = client.next().await else {
                return kinds;
            };
            match frame.kind {
                DATA => window -= frame.content.len(),
                kind => kinds.push(kind),
            }
        }
        sleep(Duration::from_millis(1_500)).await;
        client.open(0, bytes).await;
        window += bytes as usize;
    }
    kinds.retain(|kind| [RST_STREAM, GOAWAY].contains(kind));
    kinds
}

#[tokio::test(start_paused = true)]
async fn the_connections_window_is_all_streams_to_keep_open() {
    local(async {
        let server = serve(1_000);
        let kinds = through_a_narrow_connection(&server, 1_200).await;
        let resets: usize = kinds
            .iter()
            .map(|kind| usize::from(*kind == RST_STREAM))
            .sum();
        assert_eq!(resets, 10);
        assert!(kinds.contains(&GOAWAY));
        // Of which each stream has a tenth.
        let kinds = through_a_narrow_connection(&server, 1_600).await;
        assert!(kinds.is_empty(), "{kinds:?}");
    })
    .await;
}

/// A client that takes 25,000 bytes a second of what the system has, its windows being open: for
/// how many seconds it could.
async fn seconds_at_25_kb(server: &Rig) -> u64 {
    let mut client = Frames::with_window(&server.path, WINDOW_MAX).await;
    client.open(0, WINDOW_MAX - 65_535).await;
    client.get(1, "/endless").await;
    let since = Instant::now();
    while since.elapsed() < 1_000 * SECOND {
        let mut taken = 0;
        while taken < 500_000 {
            let Some(frame) = client.next().await else {
                return since.elapsed().as_secs();
            };
            taken += frame.content.len();
        }
        sleep(20 * SECOND).await;
    }
    since.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_which_too_little_is_read_is_disconnected() {
    local(async {
        assert!((30..150).contains(&seconds_at_25_kb(&serve(50_000)).await));
        assert!(seconds_at_25_kb(&serve(20_000)).await >= 1_000);
    })
    .await;
}
