use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;

use h3::server::RequestStream;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderName, TRANSFER_ENCODING, UPGRADE};
use http::response::Parts;
use http::{HeaderValue, Response};
use http_body::Body;

use super::streams::Stream;
use super::transport::SendStream;
use crate::app::{App, BoxError};
use crate::event_loop::Loop;
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
    if let Err(error) = send_all(&mut send, head, has_content.then_some(content)).await {
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
) -> Result<(), BoxError>
where
    B: Body<Error: Into<BoxError>>,
{
    send.send_response(head).await?;
    while let Some(body) = &mut content {
        let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await else {
            break;
        };
        match frame?.into_data() {
            Ok(part) => send.send_data(part).await?,
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                send.send_trailers(trailers).await?;
                break;
            }
        }
    }
    Ok(send.finish().await?)
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
