use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use bytes::Buf;
use h3::server::RequestStream;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderName, TRANSFER_ENCODING, UPGRADE};
use http::response::Parts;
use http::{HeaderValue, Response};
use http_body::Body;

use super::streams::Stream;
use super::transport::SendStream;
use crate::app::{App, BoxError};
use crate::connection::SHORT_BODY_BYTES;
use crate::event_loop::{Bulk, Loop, Ticket};
use crate::handover::body::{Part, ResponseBody};
use crate::handover::length::is_without_content;
use crate::handover::requests::Responding;

/// Fields that concern a connection of HTTP/1.1, and that a response must not have (RFC 9114, 4.2).
const OF_CONNECTIONS: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Bytes for which each part of a body counts at least: those that are short cost a frame, too, and
/// a lock of the connection.
const PART_BYTES_MIN: u64 = 1_024;

/// Sends the response. Ready only if that fails: what is sent is there until the client has it.
pub(super) async fn respond<A: App>(
    home: &Loop<A>,
    mut send: RequestStream<SendStream, Part>,
    responding: Responding<A>,
    stream: &Rc<Stream>,
    is_head: bool,
) {
    let response = match responding.await {
        Ok(response) => response,
        Err(error) => return tracing::error!(error, "the application failed"),
    };
    stream.hold_head(0);
    let (mut parts, body) = response.into_parts();
    let has_content = !is_without_content(is_head, parts.status);
    complete(home, &mut parts, &body, is_head);
    let head = Response::from_parts(parts, ());
    let mut body = pin!(body);
    let content = body.as_mut();
    let turns = Turns::new(&home.bulk);
    if let Err(error) = send_all(&mut send, head, has_content.then_some(content), turns).await {
        return tracing::debug!(error, "a response is cut short");
    }
    stream.finish();
    // What is dropped with the body counts as under way until then.
    pending::<()>().await;
}

async fn send_all<B>(
    send: &mut RequestStream<SendStream, Part>,
    head: Response<()>,
    mut content: Option<Pin<&mut ResponseBody<B>>>,
    mut turns: Turns<'_>,
) -> Result<(), BoxError>
where
    B: Body<Error: Into<BoxError>>,
{
    send.send_response(head).await?;
    while let Some(body) = &mut content {
        turns.turn().await;
        let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await else {
            break;
        };
        match frame?.into_data() {
            Ok(part) => {
                let bytes = part.remaining();
                send.send_data(part).await?;
                turns.spend(bytes);
            }
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                send.send_trailers(trailers).await?;
                break;
            }
        }
    }
    Ok(send.finish().await?)
}

/// The turns of a response among all that is long in its loop: a body that is always ready is held
/// up by QUIC only once that holds `output_bytes_max`, and never by a client that is fast enough.
struct Turns<'a> {
    bulk: &'a Bulk,
    ticket: Option<Ticket>,
    sent: u64,
}

impl<'a> Turns<'a> {
    fn new(bulk: &'a Bulk) -> Self {
        Self {
            bulk,
            ticket: None,
            sent: 0,
        }
    }

    /// Waits until the response may go on.
    async fn turn(&mut self) {
        if self.sent <= SHORT_BODY_BYTES {
            return;
        }
        poll_fn(|cx| {
            if self.bulk.is_turn(&mut self.ticket, cx) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Counts a part that was sent.
    fn spend(&mut self, bytes: usize) {
        let bytes = PART_BYTES_MIN.max(bytes as u64);
        self.sent = self.sent.saturating_add(bytes);
        if self.sent > SHORT_BODY_BYTES {
            self.bulk.spend(bytes, &mut self.ticket);
        }
    }
}

/// Completes the head by what is the server's to say.
fn complete<A: App, B>(home: &Loop<A>, parts: &mut Parts, body: &ResponseBody<B>, is_head: bool)
where
    ResponseBody<B>: Body,
{
    let headers = &mut parts.headers;
    for name in OF_CONNECTIONS {
        headers.remove(name);
    }
    if !headers.contains_key(DATE) {
        let context = home.context.borrow();
        if let Ok(date) = HeaderValue::from_bytes(context.date.as_bytes()) {
            headers.insert(DATE, date);
        }
    }
    let length = body.size_hint().exact();
    // The body that a response to HEAD does not have may be gone already.
    let length = length.filter(|length| !is_head || *length > 0);
    let length = length.filter(|_| !is_without_content(false, parts.status));
    if let Some(length) = length {
        headers.entry(CONTENT_LENGTH).or_insert(length.into());
    }
}
