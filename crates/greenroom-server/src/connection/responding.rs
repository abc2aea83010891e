//! From a request to the last byte of its response.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use bytes::Bytes;
use greenroom_http::{BodySize, ReasonPhrase};
use greenroom_timing::FileOffer;
use http::{Extensions, HeaderMap, Response, StatusCode};
use http_body::Body;

use super::closing::{Closing, Leaving};
use super::exchange::{Handled, Part, message};
use super::file_sender::FileSender;
use super::outbox::Uncopied;
use super::requesting::DISCARDED_BYTES_MAX;
use super::scratch::OUTPUT_BYTES_FULL;
use super::waiting::Wait;
use super::{Connection, Outcome, READ_BYTES_MAX, SHORT_BODY_BYTES, Scratch, Turn};
use crate::access;
use crate::app::App;
use crate::failure;
use crate::proxies::Sender;
use crate::rejection::Rejection;
use crate::request_handle::during;
use crate::strict::be_strict;

/// Chunks up to this size are copied behind what is to be sent before them; longer ones are sent
/// from where they are, in the same system call.
const COPIED_BYTES_MAX: usize = 16 * 1_024;

/// The rest of a file is sent without a copy if it is longer: a short one is copied faster.
const FILE_BYTES_MIN: u64 = 64 * 1_024;

/// Returns the length of a response's body, if it is known; the message if the body panics.
fn exact_length<B: Body>(response: &Response<B>) -> Result<Option<u64>, String> {
    let look = AssertUnwindSafe(|| response.body().size_hint().exact());
    catch_unwind(look).map_err(|panic| message(panic.as_ref()))
}

impl<A: App> Connection<A> {
    /// Runs the handler, or gets it what it waits for.
    pub(super) fn handle(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        let Some(exchange) = &mut self.exchange else {
            return Turn::Again;
        };
        let takes_informational = self.http.takes_informational();
        let (lent, line) = (&self.home.lent, &mut self.line);
        let mut response = None;
        let polled = during(lent, line, takes_informational, || {
            let service = &mut self.service;
            exchange.as_mut().poll_handled(service, cx, &mut response)
        });
        if let Some(head) = exchange.as_mut().emptied_head() {
            self.home.context.borrow_mut().recycle_head(head);
        }
        if let Some(line) = line {
            match &polled {
                Poll::Pending => line.take(cx.waker(), &mut scratch.out),
                Poll::Ready(_) => line.take_last(&mut scratch.out),
            }
        }
        match polled {
            Poll::Pending => self.meanwhile(cx, scratch),
            Poll::Ready(Handled::Response) => {
                let length = match response.as_ref().map(exact_length) {
                    None => return self.respond(cx, scratch),
                    Some(Ok(length)) => length,
                    Some(Err(panic)) => return self.panicked(&panic, scratch),
                };
                match self.begin_response(&mut response, length, scratch) {
                    Some(body) => self.send_rejection(&body, scratch),
                    None => self.respond(cx, scratch),
                }
            }
            Poll::Ready(Handled::Failed(error)) => {
                let about = exchange.as_mut().about();
                let (status, text) = failure::response_to(&error, about);
                self.fail(status, text, scratch);
                Turn::Again
            }
            Poll::Ready(Handled::Panicked(panic)) => self.panicked(&panic, scratch),
        }
    }

    /// Responds in place of a handler, or of the size of its body, that panicked.
    fn panicked(&mut self, panic: &str, scratch: &mut Scratch) -> Turn<A> {
        if let Some(exchange) = &mut self.exchange {
            failure::log_panic(panic, &exchange.as_mut().about().route());
        }
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        self.fail(status, failure::PANICKED, scratch);
        Turn::Again
    }

    /// While the application works: brings it the body that it waits for, and watches the client.
    fn meanwhile(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        if self.body_is_wanted(cx) {
            return self.pump(cx, scratch);
        }
        match self.poll_flush(cx, scratch) {
            Poll::Ready(Ok(())) => self.watch(cx, scratch),
            Poll::Pending => Turn::Wait(Wait::Write),
            Poll::Ready(Err(error)) => self.broken(&error),
        }
    }

    /// Looks whether the client has left. What it sends ahead, be it of a body that the application
    /// does not ask for yet, is kept, up to a limit.
    fn watch(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        // What is not read to its end wakes nobody: it is looked at again after a while.
        let mut wait = Wait::Watch;
        while !self.ended && !scratch.is_full() {
            // Without memory for more, no more is read than tells whether the client has left.
            let is_short = self.home.memory.is_full();
            let bytes_max = if is_short { 1 } else { READ_BYTES_MAX };
            let is_long = self.is_body_long();
            if is_long && !self.is_turn(cx) {
                wait = Wait::Handler;
                break;
            }
            match self.socket.poll_read(scratch.room_for(bytes_max), cx) {
                Poll::Pending => {
                    wait = Wait::Handler;
                    break;
                }
                Poll::Ready(Ok(0)) => {
                    self.ended = true;
                    if self.has_left() {
                        return self.end_of_input();
                    }
                }
                Poll::Ready(Ok(bytes)) => {
                    scratch.filled(bytes);
                    if !is_short && !self.http.is_received() {
                        // Who ends its side behind its body does so from now on.
                        self.waiting.restart(self.home.now());
                    }
                    if is_long {
                        self.spend(bytes as u64);
                    }
                    if is_short {
                        break;
                    }
                }
                Poll::Ready(Err(error)) => return self.broken(&error),
            }
        }
        if wait == Wait::Watch && !self.ended && self.has_ended_unread() {
            self.ended = true;
            if self.has_left() {
                return self.end_of_input();
            }
        }
        if self.ended && !self.home.settings.half_close {
            return self.wait_half_closed(cx);
        }
        Turn::Wait(if self.ended { Wait::Handler } else { wait })
    }

    /// Returns `true` if the client has ended its side, or is gone, behind what was not read of it.
    /// Of one that may still be sending its body only a reset tells.
    fn has_ended_unread(&self) -> bool {
        self.socket.is_hung_up() || self.http.is_received() && self.socket.has_ended()
    }

    /// Takes the response and sends its head. Returns the body in place of its own if it is a
    /// rejection.
    fn begin_response(
        &mut self,
        taken: &mut Option<Response<A::Body>>,
        length: Option<u64>,
        scratch: &mut Scratch,
    ) -> Option<Bytes> {
        let is_leaving = self.is_leaving();
        let (exchange, response) = self.exchange.as_mut().zip(taken.as_mut())?;
        // A client that was not told to go on may or may not send its body: nobody could tell
        // where the next request begins.
        let unsure = *exchange.as_mut().continue_due();
        let feeder = exchange.as_mut().feeder().as_ref();
        if let Some(feeder) = feeder {
            // From now on its client may send as it receives, a message an hour.
            feeder.pace.lift();
        }
        let unread = feeder.map_or(0, crate::body::Feeder::unread);
        let too_long = unread > DISCARDED_BYTES_MAX as u64;
        if unsure || too_long || is_leaving {
            self.http.close_after_response();
        }
        let about = exchange.as_mut().about();
        about.status = Some(match response.status() {
            // Sent in its place: it is no final one.
            status if status.is_informational() => StatusCode::INTERNAL_SERVER_ERROR,
            status => status,
        });
        let replaced = self.home.settings.rejections.replace(response, about);
        let size = match (&replaced, length) {
            (Some(body), _) => BodySize::Exact(body.len() as u64),
            (None, Some(length)) => BodySize::Exact(length),
            (None, None) => BodySize::Unknown,
        };
        about.respond(response.headers_mut());
        take_over_reason(response.extensions_mut());
        if self.home.settings.is_strict && self.socket.is_tls() {
            be_strict(response.headers_mut());
        }
        if self.socket.is_tls() && self.sender == Sender::Client {
            self.home.settings.tell_http3(response.headers_mut());
        }
        let mut context = self.home.context.borrow_mut();
        self.http
            .respond(response, size, &context, &mut scratch.out);
        let (parts, body) = taken.take()?.into_parts();
        context.recycle(parts.headers);
        context.recycle_extensions(parts.extensions);
        drop(context);
        exchange.as_mut().respond(body);
        replaced
    }

    /// Sends this body, and not the one of the response that has begun.
    fn send_rejection(&mut self, body: &[u8], scratch: &mut Scratch) -> Turn<A> {
        let sent = self.http.data(body.len(), &mut scratch.out).length;
        scratch.out.extend_from_slice(&body[..sent]);
        if let Some(exchange) = &mut self.exchange {
            exchange.as_mut().about().sent += sent as u64;
        }
        self.finish(None, scratch)
    }

    /// Sends what there is of the response's body; a long one waits for its turn.
    pub(super) fn respond(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        if !self.http.sends_body() {
            return self.finish(None, scratch);
        }
        if self.is_response_long() && !self.is_turn(cx) {
            return Turn::Wait(Wait::Handler);
        }
        let Some(exchange) = &mut self.exchange else {
            return Turn::Again;
        };
        let takes_file = self.http.left() > FILE_BYTES_MIN && self.socket.sends_files();
        match exchange.as_mut().poll_part(takes_file, cx) {
            Poll::Pending => self.meanwhile(cx, scratch),
            Poll::Ready(Part::Data { bytes, last, offer }) => {
                self.send(bytes, last, offer, cx, scratch)
            }
            Poll::Ready(Part::Trailers(trailers)) => self.finish(Some(&trailers), scratch),
            Poll::Ready(Part::End) => self.finish(None, scratch),
            Poll::Ready(Part::Failed(error)) => {
                let route = exchange.as_mut().about().route();
                tracing::warn!(error, route, "a response's body failed; aborting it");
                self.abort_response(cx, scratch)
            }
            Poll::Ready(Part::Panicked(panic)) => {
                failure::log_panic(&panic, &exchange.as_mut().about().route());
                self.abort_response(cx, scratch)
            }
        }
    }

    /// Returns `true` if so much of the response's body was sent that the rest waits for turns.
    fn is_response_long(&mut self) -> bool {
        let exchange = self.exchange.as_mut();
        let sent = exchange.map_or(0, |exchange| exchange.as_mut().about().sent);
        sent > SHORT_BODY_BYTES
    }

    fn send(
        &mut self,
        mut part: Bytes,
        last: bool,
        offer: Option<Box<FileOffer>>,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Turn<A> {
        if self.ended {
            self.silence = None;
        }
        let framed = self.http.data(part.len(), &mut scratch.out);
        let excess = framed.length < part.len();
        part.truncate(framed.length);
        if let Some(exchange) = &mut self.exchange {
            let about = exchange.as_mut().about();
            about.sent += framed.length as u64;
            if excess {
                let route = about.route();
                tracing::warn!(
                    route,
                    "a response is longer than its Content-Length; cut there"
                );
            }
        }
        let file = offer.and_then(|offer| self.take_file(*offer, &part));
        let (end, given) = (framed.end, self.outbox.given());
        let sent = self.send_part(Uncopied { part, end, file }, cx, scratch);
        if self.is_response_long() {
            let given = self.outbox.given() - given;
            self.spend(given.max(framed.length as u64));
        }
        match sent {
            Poll::Pending => Turn::Wait(self.outbox_wait()),
            Poll::Ready(Err(error)) => self.broken(&error),
            Poll::Ready(Ok(())) if last || excess => self.finish(None, scratch),
            Poll::Ready(Ok(())) => Turn::Again,
        }
    }

    /// Takes the offer to send the rest of a body from its file, if it is what was promised.
    fn take_file(&mut self, offer: FileOffer, part: &[u8]) -> Option<Box<FileSender>> {
        let left = self.http.left();
        if left <= FILE_BYTES_MIN {
            return None;
        }
        let rest = offer.behind(part, left)?;
        let bytes = self.http.rest();
        if let Some(exchange) = &mut self.exchange {
            exchange.as_mut().about().sent += bytes;
        }
        Some(Box::new(FileSender::new(rest)))
    }

    fn send_part(
        &mut self,
        framed: Uncopied,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Poll<std::io::Result<()>> {
        let (out, socket) = (&mut scratch.out, &mut self.socket);
        if framed.part.len() > COPIED_BYTES_MAX {
            return self.outbox.poll_send(out, framed, socket, cx);
        }
        out.extend_from_slice(&framed.part);
        out.extend_from_slice(framed.end);
        if out.len() < OUTPUT_BYTES_FULL && framed.file.is_none() {
            return Poll::Ready(Ok(()));
        }
        let rest = Uncopied {
            file: framed.file,
            ..Uncopied::default()
        };
        self.outbox.poll_send(out, rest, socket, cx)
    }

    /// Ends the response, and decides what becomes of the connection.
    fn finish(&mut self, trailers: Option<&HeaderMap>, scratch: &mut Scratch) -> Turn<A> {
        let complete = self.http.finish(trailers, &mut scratch.out);
        if let Some(exchange) = &mut self.exchange {
            let about = exchange.as_mut().about();
            if let Err(error) = complete {
                about.cut = true;
                tracing::warn!(%error, route = about.route(), "a response is cut short");
            }
            access::end(about, self.peer);
        }
        self.drop_exchange();
        self.responded = true;
        if !self.http.keeps_alive() {
            // A client that did not ask for the end may have sent its next request ahead, which the
            // system has and nobody has read. It is not waited for where somebody needs its
            // descriptor.
            let may_go_on = !self.http.is_last_of_client() && self.leaving != Leaving::Evicted;
            let is_over = self.http.is_received() && scratch.unread().is_empty();
            self.closing = if is_over && !may_go_on {
                Closing::Flush
            } else {
                Closing::Linger
            };
        }
        Turn::Again
    }

    /// Aborts the response. The client sees so by the end of the connection before that of the
    /// response, or by a reset where the end would be the body's.
    fn abort_response(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        // It is aborted anyway; what cannot be sent at once is lost. A socket that the runtime was
        // given just now takes something before the runtime says so.
        if self.poll_flush(cx, scratch).is_pending() {
            let _sent = self.outbox.look(&mut self.socket);
        }
        self.cut_exchange();
        Turn::End(Outcome::Closed)
    }

    /// Responds for a handler that failed, and ends the connection: its service may be in any
    /// state.
    fn fail(&mut self, status: StatusCode, text: &'static str, scratch: &mut Scratch) {
        self.respond_instead(Rejection::new(status, text), scratch);
    }
}

/// Applications name a reason phrase of their own by hyper's type, which greenroom-http does not
/// know.
fn take_over_reason(extensions: &mut Extensions) {
    let Some(phrase) = extensions.get::<hyper::ext::ReasonPhrase>() else {
        return;
    };
    if let Some(phrase) = ReasonPhrase::new(phrase.clone().into()) {
        extensions.insert(phrase);
    }
}
