//! `CONNECT`, for applications that are proxies.

use bytes::Bytes;
use greenroom_server::RequestBody;
use h2::{RecvStream, SendStream};
use http::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_local;

use crate::client::get;
use crate::http2_pace::client;
use crate::rig::{Reply, Rig, app, local, text};

/// Opens a tunnel to an echo, and refuses one to anywhere else.
async fn handler(mut request: Request<RequestBody>) -> Reply {
    if request
        .uri()
        .authority()
        .is_none_or(|to| to.as_str() != "echo:7")
    {
        let mut response = text(request.uri().to_string());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return Ok(response);
    }
    let upgrade = hyper::upgrade::on(&mut request);
    spawn_local(async move {
        let mut tunnel = TokioIo::new(upgrade.await.unwrap());
        let mut read = [0; 100];
        while let Ok(length @ 1..) = tunnel.read(&mut read).await {
            tunnel.write_all(&read[..length]).await.unwrap();
        }
    });
    Ok(text(""))
}

fn connect(to: &str) -> String {
    format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n")
}

#[tokio::test(start_paused = true)]
async fn an_application_opens_a_tunnel() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client
            .send(get("/before") + &connect("echo:7") + "early")
            .await;
        assert_eq!(client.response().await.status, 405);
        let (status, head) = client.head().await;
        assert_eq!(status, 200);
        let head = head.to_lowercase();
        for framing in ["content-length", "transfer-encoding", "connection"] {
            assert!(!head.contains(framing), "{head}");
        }
        assert_eq!(client.read_exactly(5).await, b"early");
        client.send("late\r\n\r\n").await;
        assert_eq!(client.read_exactly(8).await, b"late\r\n\r\n");
        client.end().await;
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_application_that_opens_none_responds_and_the_connection_ends() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(connect("other:80")).await;
        let response = client.response().await;
        assert_eq!((response.status, response.text()), (405, "other:80"));
        assert!(response.closes());
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_that_outlasts_the_drain_is_aborted_and_named() {
    local(async {
        let server = Rig::start(app(handler));
        let mut client = server.connect().await;
        client.send(connect("echo:7")).await;
        assert_eq!(client.head().await.0, 200);
        server.handle.drain();
        client.send("still").await;
        assert_eq!(client.read_exactly(5).await, b"still");
        let cut = server.ended().await.aborted;
        let routes: Vec<_> = cut.iter().map(|cut| cut.route.as_str()).collect();
        assert_eq!(routes, ["CONNECT echo:7"]);
    })
    .await;
}

/// Opens a tunnel over HTTP/2, and has it echo something.
async fn tunnel(server: &Rig) -> (SendStream<Bytes>, RecvStream) {
    let mut client = client(server, 65_535).await.ready().await.unwrap();
    let request = Request::connect("echo:7").body(()).unwrap();
    let (response, mut send) = client.send_request(request, false).unwrap();
    let mut receive = response.await.unwrap().into_body();
    assert_echoes(&mut send, &mut receive).await;
    (send, receive)
}

async fn assert_echoes(send: &mut SendStream<Bytes>, receive: &mut RecvStream) {
    send.send_data(Bytes::from_static(b"echo"), false).unwrap();
    assert_eq!(receive.data().await.unwrap().unwrap(), "echo");
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_over_http2_that_outlasts_the_drain_is_aborted_and_named() {
    local(async {
        let server = Rig::start(app(handler));
        let (mut send, mut receive) = tunnel(&server).await;
        server.handle.drain();
        assert_echoes(&mut send, &mut receive).await;
        let cut = server.ended().await.aborted;
        let routes: Vec<_> = cut.iter().map(|cut| cut.route.as_str()).collect();
        assert_eq!(routes, ["CONNECT echo:7"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_over_http2_that_ends_within_the_drain_is_not() {
    local(async {
        let server = Rig::start(app(handler));
        let (mut send, mut receive) = tunnel(&server).await;
        server.handle.drain();
        assert_echoes(&mut send, &mut receive).await;
        send.send_data(Bytes::new(), true).unwrap();
        while let Some(data) = receive.data().await {
            assert_eq!(data.unwrap(), "");
        }
        assert_eq!(server.ended().await.aborted, []);
    })
    .await;
}
