//! A client of HTTP/2 over TLS, with several streams at once on one connection.
//!
//! A stream above the last one that a GOAWAY names, or that was refused (`REFUSED_STREAM`), was not
//! begun, and may be sent again (RFC 9113, 6.8 and 8.7). Every other one must get its response.

use bytes::Bytes;
use futures_util::future::join_all;
use h2::client::SendRequest;
use h2::{Error, Reason};
use http::Request;
use tokio::time::timeout;

use super::connection::Stream;
use super::exchange::{RESPONSE_MAX, late};
use super::http1::BUSY;
use super::{HELLO, Load, UPLOAD_BYTES};
use crate::counts::{Counts, Failed, Failure};

const STREAMS: usize = 4;
/// Connections on which one request is tried that none of them began.
const TRIES_MAX: usize = 5;

enum Tried {
    Done(Result<(), Failed>),
    /// The server has not begun it.
    NotBegun,
}

/// Sends groups of requests until the load ends.
pub(crate) async fn run(load: Load) -> Counts {
    let mut counts = Counts::default();
    let mut sender = None;
    while load.goes_on() {
        let has_failed = group(&load, &mut sender, &mut counts).await;
        load.pause(BUSY, has_failed).await;
    }
    counts
}

/// Sends as many requests at once as there are streams; returns true if one failed.
async fn group(load: &Load, kept: &mut Option<SendRequest<Bytes>>, counts: &mut Counts) -> bool {
    let mut left = STREAMS;
    let mut has_failed = false;
    for _ in 0..TRIES_MAX {
        let sender = match ready(load, kept.take(), counts).await {
            Ok(sender) => sender,
            Err(failed) => {
                counts.count(Err(failed), load.seconds());
                return true;
            }
        };
        let tries = (0..left).map(|index| attempt(load, sender.clone(), index == 0));
        left = 0;
        for tried in join_all(tries).await {
            match tried {
                Tried::Done(outcome) => {
                    has_failed |= outcome.is_err();
                    counts.count(outcome, load.seconds());
                }
                Tried::NotBegun => left += 1,
            }
        }
        *kept = Some(sender);
        if left == 0 {
            return has_failed;
        }
        counts.retried += left as u64;
    }
    for _ in 0..left {
        let text = format!("{TRIES_MAX} connections did not begin it");
        counts.count(Err(Failed(Failure::Refused, text)), load.seconds());
    }
    true
}

/// Returns a connection that takes requests: the one that was kept, or another.
async fn ready(
    load: &Load,
    kept: Option<SendRequest<Bytes>>,
    counts: &mut Counts,
) -> Result<SendRequest<Bytes>, Failed> {
    if let Some(sender) = kept {
        if let Ok(sender) = sender.ready().await {
            return Ok(sender);
        }
        counts.reopened += 1;
    }
    let stream = Stream::open(load.target.tls, Some(&load.http2), None).await?;
    let refused = |error: Error| Failed(Failure::Refused, format!("preface: {error}"));
    let (sender, connection) = h2::client::handshake(stream).await.map_err(refused)?;
    // It ends with the connection. Its errors reach the streams, too.
    tokio::spawn(connection);
    sender.ready().await.map_err(refused)
}

async fn attempt(load: &Load, sender: SendRequest<Bytes>, is_post: bool) -> Tried {
    match timeout(RESPONSE_MAX, request(load, sender, is_post)).await {
        Err(_) => Tried::Done(Err(late("no response"))),
        Ok(Ok(outcome)) => Tried::Done(outcome),
        Ok(Err(error)) => judge(&error),
    }
}

fn judge(error: &Error) -> Tried {
    let was_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    // The library gives this error to streams above the last one only.
    let went_away = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
    if error.is_remote() && (was_refused || went_away) {
        return Tried::NotBegun;
    }
    let text = format!("HTTP/2: {error}");
    let failure = match error.get_io() {
        Some(error) => return Tried::Done(Err(Failed::of(error, &text))),
        None if error.is_reset() => Failure::Reset,
        None => Failure::Wrong,
    };
    Tried::Done(Err(Failed(failure, text)))
}

async fn request(
    load: &Load,
    sender: SendRequest<Bytes>,
    is_post: bool,
) -> Result<Result<(), Failed>, Error> {
    // Without a place for the stream nothing was sent.
    let mut sender = sender.ready().await?;
    let (method, path, expected) = if is_post {
        ("POST", "/upload", format!("\"bytes\":{UPLOAD_BYTES}"))
    } else {
        ("GET", "/hello", HELLO.to_owned())
    };
    let uri = format!("https://{}{path}", load.target.tls);
    let head = Request::builder().method(method).uri(uri).body(());
    let head = head.expect("method and URI are valid");
    let (response, mut body) = sender.send_request(head, !is_post)?;
    if is_post {
        body.send_data(Bytes::from(vec![b'a'; UPLOAD_BYTES]), true)?;
    }
    let (head, mut stream) = response.await?.into_parts();
    let mut text = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        stream.flow_control().release_capacity(piece.len())?;
        text.extend_from_slice(&piece);
    }
    let text = String::from_utf8_lossy(&text);
    if head.status != 200 || !text.contains(&expected) {
        let text = format!("{} {text:?}", head.status);
        return Ok(Err(Failed(Failure::Wrong, text)));
    }
    Ok(Ok(()))
}
