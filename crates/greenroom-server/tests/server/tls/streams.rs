use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use greenroom_server::RequestBody;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::handshakes::connect;
use crate::over::{client_config, tls};
use crate::rig::{Reply, Rig, app, streamed, within};

/// Bytes of a body that no buffer holds as a whole.
const LONG: usize = 3_000_000;

async fn handler(request: Request<RequestBody>) -> Reply {
    if request.uri().path() != "/long" {
        let body = request.into_body().map_err(Into::into);
        return Ok(Response::new(body.boxed_unsync()));
    }
    // Of sizes around those of records.
    let sizes = [1, 100, 16_383, 16_384, 16_385, 40_000, 65_536, 200_000];
    let mut sent = 0;
    let parts = sizes.into_iter().cycle().map_while(move |size: usize| {
        let size = size.min(LONG - sent);
        sent += size;
        (size > 0).then(|| Ok(Frame::data(pattern(sent - size, size))))
    });
    Ok(streamed(stream::iter(parts)))
}

/// Bytes of a pattern without short periods.
fn pattern(from: usize, length: usize) -> Bytes {
    (from..from + length)
        .map(|at| u8::try_from((at * at / 251 + at) % 256).unwrap())
        .collect()
}

fn start() -> Rig {
    Rig::with(app(handler), |builder| builder.tls(tls().build().unwrap()))
}

#[tokio::test]
async fn long_bodies_arrive_as_they_were_sent() {
    within(async {
        let server = start();
        let config = Arc::new(client_config());
        for read_bytes in [1_000, 64 * 1_024] {
            let mut stream = connect(&server, &config).await.unwrap();
            let request = b"GET /long HTTP/1.0\r\nHost: test\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut response = Vec::new();
            let mut part = vec![0; read_bytes];
            loop {
                match stream.read(&mut part).await.unwrap() {
                    0 => break,
                    length => response.extend_from_slice(&part[..length]),
                }
            }
            let body = body_of(&response);
            assert!(body == pattern(0, LONG), "{} bytes", body.len());
        }
    })
    .await;
}

fn body_of(response: &[u8]) -> &[u8] {
    let end = response
        .windows(4)
        .position(|some| some == b"\r\n\r\n")
        .unwrap();
    &response[end + 4..]
}

#[tokio::test]
async fn a_body_comes_in_records_of_any_size_and_with_new_keys() {
    within(async {
        let server = start();
        let mut config = client_config();
        for record_bytes in [32, 1_000, 16_389] {
            config.max_fragment_size = Some(record_bytes);
            let stream = connect(&server, &Arc::new(config.clone())).await.unwrap();
            let (mut reading, mut writing) = tokio::io::split(stream);
            let length = LONG.min(record_bytes * 2_000);
            let sending = async {
                let head = format!(
                    "POST /echo HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\
                    Content-Length: {length}\r\n\r\n"
                );
                writing.write_all(head.as_bytes()).await.unwrap();
                writing.write_all(&pattern(0, length)).await.unwrap();
                writing.flush().await.unwrap();
                writing
            };
            let receiving = async {
                let mut response = Vec::new();
                reading.read_to_end(&mut response).await.unwrap();
                response
            };
            let (_writing, response) = tokio::join!(sending, receiving);
            assert!(body_of(&response) == pattern(0, length), "{record_bytes}");
        }
    })
    .await;
}

#[tokio::test]
async fn keys_change_midway() {
    within(async {
        let server = start();
        let mut stream = connect(&server, &Arc::new(client_config())).await.unwrap();
        for turn in 0..40 {
            let body = format!("turn {turn}");
            let request = format!(
                "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.get_mut().1.refresh_traffic_keys().unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut response = Vec::new();
            while !response.ends_with(body.as_bytes()) {
                assert!(stream.read_buf(&mut response).await.unwrap() > 0, "{turn}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn many_requests_come_in_one_record() {
    within(async {
        let server = start();
        let mut stream = connect(&server, &Arc::new(client_config())).await.unwrap();
        let request = "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello";
        let last = request.replace("Host", "Connection: close\r\nHost");
        stream
            .write_all((request.repeat(99) + &last).as_bytes())
            .await
            .unwrap();
        let mut responses = String::new();
        stream.read_to_string(&mut responses).await.unwrap();
        assert_eq!(responses.matches("HTTP/1.1 200 OK").count(), 100);
        assert_eq!(responses.matches("\r\n\r\nhello").count(), 100);
    })
    .await;
}
