use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use h3::error::Code;
use h3::server::RequestStream;
use http::{Method, Request};
use tokio::time::timeout;

use super::Resolver;
use super::body::{self, Begun, Pump, Pumped};
use super::respond::respond;
use super::streams::{Ended, Stream};
use super::transport::BidiStream;
use crate::app::App;
use crate::event_loop::Loop;
use crate::handover::body::Part;
use crate::handover::requests::{Requests, head_bytes};

/// Parts of a body that the application is given before others of the loop get their turn.
const PARTS_MAX: usize = 16;

/// Serves one request, to the last byte of its response.
pub(super) async fn serve<A: App>(
    home: Rc<Loop<A>>,
    requests: Rc<Requests<A>>,
    resolver: Resolver,
    stream: Rc<Stream>,
) {
    let Some((request, io)) = receive(&home, resolver, &stream).await else {
        return stream.streams().note_fault();
    };
    stream.begin(head_bytes(&request));
    let is_head = *request.method() == Method::HEAD;
    let (send, received) = io.split();
    let limits = &home.settings.limits;
    let Begun {
        body,
        noted,
        mut pump,
    } = body::begin(&request, received, limits, &stream).await;
    let responding = requests.respond(request.map(|()| body), noted, stream.cut());
    stream.reset_with(Code::H3_INTERNAL_ERROR);
    let mut responding = pin!(respond(&home, send, responding, &stream, is_head));
    // Not before the request was let in, which its own body must not keep out.
    if let Some(pump) = &pump {
        pump.hold();
    }
    let ended = poll_fn(|cx| poll(&stream, &mut pump, responding.as_mut(), cx)).await;
    if ended == Some(Ended::Cancelled) {
        stream.reset_with(Code::H3_REQUEST_CANCELLED);
        stream.streams().note_cancelled();
    }
}

/// Waits for the head.
async fn receive<A: App>(
    home: &Loop<A>,
    resolver: Resolver,
    stream: &Stream,
) -> Option<(Request<()>, RequestStream<BidiStream, Part>)> {
    let time = home.settings.limits.head_timeout;
    // Not dropped before it is known how the stream ends.
    let mut receiving = pin!(resolver.resolve_request());
    match timeout(time, receiving.as_mut()).await {
        Ok(Ok(request)) => return Some(request),
        Ok(Err(error)) => tracing::debug!(%error, "refused a request"),
        Err(_elapsed) => {
            stream.reset_with(Code::H3_REQUEST_INCOMPLETE);
            tracing::debug!("a head over HTTP/3 is too slow; resetting its stream");
        }
    }
    None
}

/// Goes on with the response and with the body of the request by turns. Ready at the end of the
/// stream; with nothing if it is the server that ends it.
fn poll(
    stream: &Stream,
    pump: &mut Option<Pump>,
    mut responding: Pin<&mut impl Future<Output = ()>>,
    cx: &mut Context<'_>,
) -> Poll<Option<Ended>> {
    if let Poll::Ready(ended) = stream.poll_ended(cx) {
        return Poll::Ready(Some(ended));
    }
    for _ in 0..PARTS_MAX {
        if responding.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        match pump.as_mut().map(|pump| pump.poll(cx)) {
            None | Some(Pumped::Nothing) => return Poll::Pending,
            Some(Pumped::Something) => {}
            Some(Pumped::Over) => *pump = None,
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
