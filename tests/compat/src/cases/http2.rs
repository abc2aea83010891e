//! HTTP/2 with prior knowledge.

mod app;
mod client;

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, try_join_all};
use h2::ext::Protocol;
use http::{Method, Request};

use crate::harness::{App, Case, Client, Ending, Script};
use app::app;
use client::{Http2, log_response, log_rest, log_result, next_data, request};

pub(crate) fn cases() -> Vec<Case> {
    let case = |name, script: Script| Case::script(name, App::Router(app), script);
    vec![
        case("http2/requests", requests),
        case("http2/fields", fields),
        case("http2/large-request-head", large_head),
        case("http2/parts", parts),
        case("http2/echo-part-by-part", echo),
        case("http2/many-at-once", many),
        case("http2/body-fails", failing),
        case("http2/panic", panicking),
        case("http2/over-two-mebibytes", over_limit),
        case("http2/without-limit", without_limit),
        case("http2/unread-body", unread),
        case("http2/client-resets", resetting),
        case("http2/shutdown", shutdown),
        case("http2/connect", connect),
        case("http2/websocket", websocket),
        Case::script("http2/connect-info", App::ConnectInfo(app), connect_info),
    ]
}

type Talked<'a> = BoxFuture<'a, Result<(), Ending>>;

/// Sends these requests one after the other.
async fn in_turn(client: &mut Client, asked: Vec<(Request<()>, Bytes)>) -> Result<(), Ending> {
    let mut http2 = Http2::connect(client).await;
    for (request, body) in asked {
        let response = http2.ask(request, body).await;
        log_result(&mut client.log, response).await;
    }
    Ok(())
}

fn requests(client: &mut Client) -> Talked<'_> {
    let asked = vec![
        (request("GET", "/"), Bytes::new()),
        (request("HEAD", "/"), Bytes::new()),
        (request("POST", "/echo"), "hello".into()),
        (request("POST", "/"), "hello".into()),
        (request("GET", "/nothing?x=1"), Bytes::new()),
        (request("GET", "/none"), Bytes::new()),
        (request("GET", "/not-modified"), Bytes::new()),
        (request("GET", "/stream"), Bytes::new()),
        (request("GET", "/trailers"), Bytes::new()),
        (request("GET", "/large"), Bytes::new()),
        (request("GET", "/uri/a%20b?c=d"), Bytes::new()),
        (request("HEAD", "/stream"), Bytes::new()),
    ];
    in_turn(client, asked).boxed()
}

fn fields(client: &mut Client) -> Talked<'_> {
    let mut with_fields = request("GET", "/fields");
    let fields = with_fields.headers_mut();
    fields.append("cookie", "a=1".parse().unwrap());
    fields.append("cookie", "b=2".parse().unwrap());
    fields.append("x-many", "one".parse().unwrap());
    fields.append("x-many", "two".parse().unwrap());
    let asked = vec![
        (with_fields, Bytes::new()),
        (request("GET", "/cookies"), Bytes::new()),
        (request("GET", "/connection-close"), Bytes::new()),
    ];
    in_turn(client, asked).boxed()
}

fn large_head(client: &mut Client) -> Talked<'_> {
    let mut large = request("GET", "/");
    let value = "x".repeat(20_000).parse().unwrap();
    large.headers_mut().insert("x-large", value);
    in_turn(client, vec![(large, Bytes::new())]).boxed()
}

fn connect_info(client: &mut Client) -> Talked<'_> {
    in_turn(client, vec![(request("GET", "/peer"), Bytes::new())]).boxed()
}

fn failing(client: &mut Client) -> Talked<'_> {
    async move {
        let mut http2 = Http2::connect(client).await;
        let response = http2.ask(request("GET", "/fails"), Bytes::new()).await;
        let mut body = log_response(&mut client.log, response).await?;
        let data = next_data(&mut body).await?;
        client.say(format!("{data:?}"));
        client.release();
        log_rest(&mut client.log, &mut body).await;
        let response = http2.ask(request("GET", "/"), Bytes::new()).await;
        log_result(&mut client.log, response).await;
        Ok(())
    }
    .boxed()
}

fn panicking(client: &mut Client) -> Talked<'_> {
    let asked = ["/panic", "/"].map(|path| (request("GET", path), Bytes::new()));
    in_turn(client, asked.into()).boxed()
}

fn mebibytes(count: usize) -> Bytes {
    b"0123456789abcdef"
        .repeat(count * 1_024 * 1_024 / 16)
        .into()
}

fn over_limit(client: &mut Client) -> Talked<'_> {
    in_turn(client, vec![(request("POST", "/echo"), mebibytes(3))]).boxed()
}

fn without_limit(client: &mut Client) -> Talked<'_> {
    in_turn(client, vec![(request("POST", "/any-size"), mebibytes(3))]).boxed()
}

/// Each chunk must arrive before the next is made.
fn parts(client: &mut Client) -> Talked<'_> {
    async move {
        let mut http2 = Http2::connect(client).await;
        let response = http2.ask(request("GET", "/parts"), Bytes::new()).await;
        let mut body = log_response(&mut client.log, response).await?;
        for part in 0..3 {
            if part > 0 {
                client.release();
            }
            let data = next_data(&mut body).await?;
            client.say(format!("{data:?}"));
        }
        log_rest(&mut client.log, &mut body).await;
        Ok(())
    }
    .boxed()
}

fn echo(client: &mut Client) -> Talked<'_> {
    async move {
        let mut http2 = Http2::connect(client).await;
        let (response, mut sender) = http2.open(request("POST", "/echo-stream")).await?;
        let mut body = log_response(&mut client.log, Ok(response)).await?;
        for word in ["one", "two", "three"] {
            let sent = sender.send_data(Bytes::from_static(word.as_bytes()), false);
            sent.map_err(|_| Ending::Reset)?;
            let data = next_data(&mut body).await?;
            client.say(format!("{data:?}"));
        }
        let ended = sender.send_data(Bytes::new(), true);
        ended.map_err(|_| Ending::Reset)?;
        log_rest(&mut client.log, &mut body).await;
        Ok(())
    }
    .boxed()
}

/// Streams whose responses come in another order.
fn many(client: &mut Client) -> Talked<'_> {
    async move {
        let mut http2 = Http2::connect(client).await;
        let mut responses = Vec::new();
        for _ in 0..20 {
            responses.push(
                http2
                    .ask(request("GET", "/when-released"), Bytes::new())
                    .await,
            );
        }
        let quick = http2.ask(request("GET", "/"), Bytes::new()).await;
        log_result(&mut client.log, quick).await;
        for _ in 0..20 {
            client.release();
        }
        let logged = responses.into_iter().map(|response| async move {
            let mut log = Vec::new();
            log_result(&mut log, response).await;
            Ok::<_, Ending>(log)
        });
        let logs = try_join_all(logged).await?;
        client.log.extend(logs.concat());
        Ok(())
    }
    .boxed()
}

/// The response comes before the request is complete.
fn unread(client: &mut Client) -> Talked<'_> {
    async move {
        let mut http2 = Http2::connect(client).await;
        let (response, sender) = http2.open(request("POST", "/ignore")).await?;
        log_result(&mut client.log, Ok(response)).await;
        drop(sender);
        let response = http2.ask(request("GET", "/"), Bytes::new()).await;
        log_result(&mut client.log, response).await;
        Ok(())
    }
    .boxed()
}

fn resetting(client: &mut Client) -> Talked<'_> {
    async move {
        let mut http2 = Http2::connect(client).await;
        let (response, mut sender) = http2.open(request("POST", "/guarded")).await?;
        client.note().await?;
        sender.send_reset(h2::Reason::CANCEL);
        drop(response);
        client.note().await?;
        let response = http2.ask(request("GET", "/"), Bytes::new()).await;
        log_result(&mut client.log, response).await;
        Ok(())
    }
    .boxed()
}

fn shutdown(client: &mut Client) -> Talked<'_> {
    async move {
        let mut http2 = Http2::connect(client).await;
        let (response, mut sender) = http2.open(request("POST", "/guarded")).await?;
        client.note().await?;
        client.shut_down();
        client.release();
        let ended = sender.send_data(Bytes::new(), true);
        ended.map_err(|_| Ending::Reset)?;
        log_result(&mut client.log, Ok(response)).await;
        client.note().await?;
        http2.log_end(&mut client.log).await;
        Ok(())
    }
    .boxed()
}

fn connect(client: &mut Client) -> Talked<'_> {
    let mut connect = request("GET", "/");
    *connect.method_mut() = Method::CONNECT;
    *connect.uri_mut() = "compat.test:80".parse().unwrap();
    in_turn(client, vec![(connect, Bytes::new())]).boxed()
}

/// A WebSocket by extended `CONNECT` (RFC 8441).
fn websocket(client: &mut Client) -> Talked<'_> {
    async move {
        let mut http2 = Http2::connect(client).await;
        let first = http2.ask(request("GET", "/"), Bytes::new()).await;
        log_result(&mut client.log, first).await;
        let is_allowed = http2.allows_extended_connect();
        client.say(format!("extended CONNECT is allowed: {is_allowed}"));
        if !is_allowed {
            return Ok(());
        }
        let mut connect = request("CONNECT", "/websocket");
        connect
            .extensions_mut()
            .insert(Protocol::from_static("websocket"));
        let version = "13".parse().unwrap();
        connect
            .headers_mut()
            .insert("sec-websocket-version", version);
        let (response, mut sender) = http2.open(connect).await?;
        let mut body = log_response(&mut client.log, Ok(response)).await?;
        for frame in [&b"\x81\x85\0\0\0\0hello"[..], b"\x88\x82\0\0\0\0\x03\xe8"] {
            let sent = sender.send_data(Bytes::from_static(frame), false);
            sent.map_err(|_| Ending::Reset)?;
            let data = next_data(&mut body).await?;
            client.say(format!("{data:?}"));
        }
        log_rest(&mut client.log, &mut body).await;
        Ok(())
    }
    .boxed()
}

/// Responds with the client's address.
fn peer(peer: SocketAddr) -> String {
    format!("{} {}", peer.ip(), peer.port() != 0)
}
