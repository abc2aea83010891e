use bytes::Bytes;
use greenroom_server::Limits;
use h3::error::Code;
use http::Request;
use quinn::{ConnectionError, Endpoint, SendStream, TransportConfig};
use tokio::time::{Instant, advance, sleep, timeout};

use super::rig::{Rig, Stream, client, client_with, endpoint, receive, uri};
use super::{SECOND, handler};
use crate::over::{NAME, client_config};
use crate::rig::{app, assert_elapsed, local};

#[tokio::test(start_paused = true)]
async fn a_drain_finishes_streams_and_takes_no_more() {
    local(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        assert_eq!(client.get("/before").await.1, "/before");
        let head = Request::get(uri("/5")).body(()).unwrap();
        let mut stream = client.begin(head).await.unwrap();
        stream.finish().await.unwrap();
        sleep(SECOND).await;
        let since = Instant::now();
        server.handle.drain();
        sleep(2 * SECOND).await;
        let late = Request::get(uri("/late")).body(Bytes::new()).unwrap();
        let error = client.try_ask(late).await.err();
        let error = error.expect("the GOAWAY was read").to_string();
        assert!(error.contains("closing"), "{error}");
        let response = receive(&mut stream).await.unwrap();
        assert_eq!(response.text(), "done");
        assert_elapsed(since, 4 * SECOND);
        assert!(client.driver.await.unwrap().is_h3_no_error());
        assert!(server.ended().await.aborted.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_on_its_way_at_a_drain_is_served() {
    local(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        assert_eq!(client.get("/before").await.1, "/before");
        server.handle.drain();
        assert_eq!(client.get("/after").await.1, "/after");
        assert!(client.driver.await.unwrap().is_h3_no_error());
        assert!(server.ended().await.aborted.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_drain_aborts_and_reports_what_is_under_way() {
    local(async {
        let limits = Limits {
            drain_deadline: 3 * SECOND,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let client = server.connect().await;
        let head = Request::get(uri("/never")).body(()).unwrap();
        let mut stream = client.begin(head).await.unwrap();
        stream.finish().await.unwrap();
        sleep(SECOND).await;
        let peer = client.endpoint.local_addr().unwrap();
        server.handle.drain();
        assert!(stream.recv_response().await.is_err());
        let report = server.ended().await;
        assert_eq!(report.aborted.len(), 1);
        assert_eq!(report.aborted[0].route, "GET /never");
        assert_eq!(report.aborted[0].peer, Some(peer));
    })
    .await;
}

/// Each of its datagrams is a client of its own. More of them come in a turn than are refused.
#[tokio::test(start_paused = true)]
async fn a_flood_of_new_clients_does_not_keep_a_server_that_drains() {
    local(async {
        let limits = Limits {
            handshakes_max: 4,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let (flood, config) = (endpoint(), client());
        let mut clients = Vec::new();
        for turn in 0..TURNS {
            for _ in 0..8 {
                let connecting = flood.connect_with(config.clone(), server.address, NAME);
                clients.push(connecting.unwrap());
            }
            if turn == 10 {
                server.handle.drain();
            }
            // Nobody waits while the flood goes on, so the clock would stand still.
            advance(SECOND / 20).await;
            if server.serving.is_finished() {
                return;
            }
        }
        panic!("it is kept by {} clients", clients.len());
    })
    .await;
}

/// Turns of a flood, 20 in a second: in those a drain is over that waits for a client's leave.
const TURNS: usize = 200;

/// Bytes of a stream that a client takes ahead: the settings of the server are fewer, but not
/// together with a GOAWAY.
const SETTINGS_ONLY: u32 = 23;

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_the_goaways_gets_its_response() {
    local(async {
        let server = Rig::start(app(handler));
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(SETTINGS_ONLY.into());
        let config = client_with(client_config(), transport);
        let endpoint = endpoint();
        let connecting = endpoint.connect_with(config, server.address, NAME);
        let connection = connecting.unwrap().await.unwrap();
        let quic = h3_quinn::Connection::new(connection.clone());
        // Nobody polls its driver, so what comes by the stream of control is not read.
        let (_driver, mut send) = Box::pin(h3::client::new(quic)).await.unwrap();
        let head = Request::get(uri("/5")).body(()).unwrap();
        let mut stream: Stream = send.send_request(head).await.unwrap();
        stream.finish().await.unwrap();
        sleep(SECOND).await;
        server.handle.drain();
        assert_eq!(receive(&mut stream).await.unwrap().text(), "done");
        let closed = connection.closed().await;
        let ConnectionError::ApplicationClosed(closed) = closed else {
            panic!("it broke: {closed}");
        };
        assert_eq!(closed.error_code.into_inner(), Code::H3_NO_ERROR.value());
        assert!(server.ended().await.aborted.is_empty());
    })
    .await;
}

/// The frame that says that no stream from the first on is served (RFC 9114, 5.2).
const GOAWAY: [u8; 3] = [7, 1, 0];

/// A client that was told to leave.
struct Told {
    connection: quinn::Connection,
    at: Instant,
    // Its end would be a fault.
    _control: SendStream,
    _endpoint: Endpoint,
}

/// A client of QUIC that sends its settings, and no request until the server has told it to leave.
async fn told_to_leave(server: &Rig) -> Told {
    let endpoint = endpoint();
    let connecting = endpoint.connect_with(client(), server.address, NAME);
    let connection = connecting.unwrap().await.unwrap();
    let mut control = connection.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0]).await.unwrap();
    let mut servers = connection.accept_uni().await.unwrap();
    // The type of the stream, and the frame of the settings.
    let mut frames = Vec::new();
    while !frames.ends_with(&GOAWAY) {
        let chunk = servers.read_chunk(1_000, true).await.unwrap();
        frames.extend(chunk.unwrap().bytes);
    }
    Told {
        connection,
        at: Instant::now(),
        _control: control,
        _endpoint: endpoint,
    }
}

/// Sends the first byte of a request on a stream of its own, which is rejected.
async fn begin_late(connection: &quinn::Connection) {
    let Ok((mut send, mut receive)) = connection.open_bi().await else {
        return;
    };
    let _written = send.write_all(&[1]).await;
    let rejected = receive.read_to_end(1_000).await;
    assert!(rejected.is_err(), "{rejected:?}");
}

/// Asserts that the server closes the connection without an error, a second after it told so.
async fn assert_closed(connection: &quinn::Connection, told: Instant) {
    let closed = timeout(2 * SECOND, connection.closed()).await;
    let ConnectionError::ApplicationClosed(closed) = closed.expect("it is closed") else {
        panic!("it broke");
    };
    assert_eq!(closed.error_code.into_inner(), Code::H3_NO_ERROR.value());
    assert_elapsed(told, SECOND);
}

#[tokio::test(start_paused = true)]
async fn requests_behind_a_goaway_keep_no_connection() {
    local(async {
        let server = Rig::start(app(handler));
        let Told { connection, at, .. } = &told_to_leave(&server).await;
        tokio::join!(begin_late(connection), begin_late(connection));
        assert_closed(connection, *at).await;
        assert_eq!(server.handle.loops()[0].connections, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn rejected_requests_without_end_keep_no_connection() {
    local(async {
        let server = Rig::start(app(handler));
        let Told { connection, at, .. } = &told_to_leave(&server).await;
        let again = connection.clone();
        tokio::task::spawn_local(async move {
            while again.close_reason().is_none() {
                begin_late(&again).await;
                sleep(SECOND / 5).await;
            }
        });
        assert_closed(connection, *at).await;
    })
    .await;
}
