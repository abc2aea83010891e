//! The end of a connection over HTTP/2: all that was sent arrives, however slowly the client reads
//! it, and whatever it says meanwhile.

use std::time::Duration;

use futures_util::future::join_all;
use greenroom_server::{Limits, RequestBody, Server};
use http::Request;
use tokio::net::TcpSocket;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use crate::http2_frames::{DATA, END_STREAM, Frames, HEADERS, frame};
use crate::listening::{ANY_PORT, tcp_address};
use crate::over;
use crate::rig::{Reply, Rig, app, assert_elapsed, local, settle, text, within};

const WINDOW: u32 = 0x7fff_ffff;
const SECOND: Duration = Duration::from_secs(1);
const LONG_BYTES: usize = 300_000;
/// So much is on its way to a client at most which reads nothing yet.
const RECEIVE_BUFFER_BYTES: u32 = 16 * 1_024;

/// As many bytes as the path says.
async fn handler(request: Request<RequestBody>) -> Reply {
    let length = request.uri().path()[1..].parse()?;
    Ok(text(vec![b'b'; length]))
}

/// Reads the only response to come, and opens the windows for each frame of it: its length, and
/// whether it was whole.
async fn read_slowly(
    client: &mut Frames,
    pause: Duration,
    mut begun: impl FnMut(),
) -> (usize, bool) {
    let mut bytes = 0;
    while let Some(frame) = client.next().await {
        if frame.kind != DATA {
            continue;
        }
        bytes += frame.content.len();
        if frame.flags & END_STREAM != 0 {
            return (bytes, true);
        }
        begun();
        sleep(pause).await;
        let length = u32::try_from(frame.content.len()).unwrap();
        client.open(0, length).await;
        client.open(1, length).await;
    }
    (bytes, false)
}

#[tokio::test]
async fn a_drain_loses_nothing_of_a_response_whose_client_opens_windows_meanwhile() {
    within(async {
        let builder = Server::builder().loops(1.try_into().unwrap());
        let server = over::server(builder.listen(ANY_PORT)).bind().unwrap();
        let (address, handle) = (tcp_address(&server), server.handle());
        let serving = spawn_local(server.serve_local(app(handler)));
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
        let stream = socket.connect(address).await.unwrap();
        let mut client = Frames::over(over::client(stream).await).await;
        client.set_window(WINDOW).await;
        client.open(0, WINDOW - 65_535).await;
        client.get(1, &format!("/{LONG_BYTES}")).await;
        let pause = Duration::from_millis(20);
        let read = read_slowly(&mut client, pause, || handle.drain()).await;
        assert_eq!(read, (LONG_BYTES, true));
        client.end().await.expect("it ends in order");
        assert_eq!(serving.await.unwrap().unwrap().aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_a_client_that_reads_late_with_what_the_system_did_not_take() {
    local(async {
        let server = Rig::start(app(handler));
        // Of some the end is in the system, of others in the server.
        let clients = (1..50).map(|number| {
            let path = server.path.clone();
            async move {
                let bytes = 8_000 * number;
                let mut client = Frames::with_window(&path, WINDOW).await;
                client.open(0, WINDOW - 65_535).await;
                client.get(1, &format!("/{bytes}")).await;
                sleep(10 * SECOND).await;
                let read = read_slowly(&mut client, Duration::ZERO, || {}).await;
                assert_eq!(read, (bytes, true));
            }
        });
        let drain = async {
            sleep(SECOND).await;
            server.handle.drain();
        };
        tokio::join!(join_all(clients), drain);
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_neither_leaves_nor_says_anything_is_left_after_2_s() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = Frames::with_window(&server.path, WINDOW).await;
        client.get(1, "/10").await;
        client.response(1).await;
        server.handle.drain();
        client.rest().await;
        let since = Instant::now();
        settle().await;
        assert_eq!(server.ended().await.aborted, []);
        assert_elapsed(since, 2 * SECOND);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_talks_on_instead_of_leaving_is_left_after_the_time_to_write() {
    local(async {
        let limits = Limits {
            write_timeout: 10 * SECOND,
            ..Limits::default()
        };
        let server = Rig::with(app(handler), |builder| builder.limits(limits));
        let mut client = Frames::with_window(&server.path, WINDOW).await;
        client.get(1, "/10").await;
        client.response(1).await;
        let since = Instant::now();
        server.handle.drain();
        client.rest().await;
        let talking = async {
            loop {
                client.open(0, 1).await;
                sleep(SECOND).await;
            }
        };
        tokio::select! {
            () = talking => {}
            report = server.ended() => assert_eq!(report.aborted, []),
        }
        let elapsed = since.elapsed().as_secs();
        assert!((10..13).contains(&elapsed), "{elapsed}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_sends_a_head_byte_by_byte_is_heard_no_longer_than_over_http_1() {
    for has_had_a_response in [false, true] {
        local(async {
            let server = Rig::start(app(handler));
            let mut client = Frames::with_window(&server.path, WINDOW).await;
            if has_had_a_response {
                client.get(1, "/10").await;
                client.response(1).await;
            }
            let since = Instant::now();
            for byte in frame(HEADERS, 0, 3, &[0; 100]) {
                if !client.send_all(&[byte]).await {
                    break;
                }
                sleep(SECOND).await;
            }
            let elapsed = since.elapsed().as_secs();
            let head_timeout = Limits::default().head_timeout.as_secs();
            let expected = head_timeout..head_timeout + 5;
            assert!(expected.contains(&elapsed), "{elapsed}");
            server.handle.drain();
            server.ended().await;
        })
        .await;
    }
}
