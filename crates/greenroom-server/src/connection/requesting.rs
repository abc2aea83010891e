//! From input to a request and its body.

use std::task::Context;

use bytes::Bytes;
use greenroom_http::{BodyLength, CONTINUE, Event, Received, Rejected, RequestHead};
use http::{HeaderMap, Request, StatusCode};
use http_body::{Body, Frame};
use tokio::time::Instant;

use super::closing::Closing;
use super::declining::{Declined, OUT_OF_MEMORY};
use super::waiting::Wait;
use super::{Connection, Outcome, READ_BYTES_MAX, SHORT_BODY_BYTES, Scratch, Turn};
use crate::access::Logged;
use crate::app::App;
use crate::body::{BodyError, BodyPace, RequestBody, pair};
use crate::handover::{Handed, Protocol};
use crate::proxies::ForwardedFor;
use crate::rejection::Rejection;
use crate::request_metrics::MeteredRequest;

/// A body that is passed over may be this long; beyond it, closing is cheaper.
pub(super) const DISCARDED_BYTES_MAX: usize = 256 * 1_024;

/// The input right behind a chunk of a body.
enum Behind {
    Nothing,
    Trailers(Box<HeaderMap>),
    End,
}

/// Returns `true` if no head has begun: an empty line, which some clients send behind a body, is
/// none (RFC 9112, 2.2).
fn is_blank(input: &[u8]) -> bool {
    input.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

impl<A: App> Connection<A> {
    /// Takes one step towards the next request.
    pub(super) fn request(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        if self.is_leaving() && self.http.is_idle() && is_blank(scratch.unread()) {
            return self.leave(cx, scratch);
        }
        if scratch.unread().is_empty() && self.http.is_idle() {
            return self.read(self.wait_for_request(scratch), cx, scratch);
        }
        let received = {
            let mut context = self.home.context.borrow_mut();
            self.http.receive(scratch.unread(), &mut context)
        };
        let Received { consumed, event } = match received {
            Ok(received) => received,
            Err(rejected) => return self.refuse(rejected, scratch),
        };
        match event {
            Event::Head(mut head) if self.is_redirected && !self.is_for_application(&head) => {
                scratch.consume(consumed);
                match self.admitted(&mut head) {
                    Ok(_) => self.redirect(&mut head, scratch),
                    Err(declined) => self.decline(&declined, &mut head, scratch),
                }
            }
            Event::Http2Preface if self.is_redirected => {
                let detail = "this port speaks HTTP/1.1, and sends clients on to https";
                self.reject(&Rejection::new(StatusCode::BAD_REQUEST, detail), scratch);
                Turn::Again
            }
            Event::Head(head) if head.upgrade => self.hand_over(Protocol::Upgrade, scratch),
            Event::Head(mut head) => {
                scratch.consume(consumed);
                let client = match self.admitted(&mut head) {
                    Ok(client) => client,
                    Err(declined) => return self.decline(&declined, &mut head, scratch),
                };
                self.begin(head, consumed, client, scratch);
                self.handle(cx, scratch)
            }
            Event::NeedMore => {
                scratch.consume(consumed);
                let wait = self.wait_for_request(scratch);
                if !is_blank(scratch.unread()) && self.home.settings.telling.is_timed() {
                    let aside = self.aside.get_or_insert_default();
                    aside.head_since.get_or_insert_with(Instant::now);
                }
                if wait == Wait::Head && !scratch.unread().is_empty() && !self.may_wait_for_head() {
                    self.reject(&OUT_OF_MEMORY.rejection(), scratch);
                    return Turn::Again;
                }
                self.read(wait, cx, scratch)
            }
            Event::Data(data) => {
                self.discarded += data.len();
                scratch.consume(consumed);
                self.discard()
            }
            Event::Trailers(_) | Event::End => {
                self.discarded = 0;
                scratch.consume(consumed);
                Turn::Again
            }
            Event::Http2Preface => self.hand_over(Protocol::Http2, scratch),
            Event::RespondFirst => {
                self.closing = Closing::Flush;
                Turn::Again
            }
        }
    }

    /// Admits a request, and returns the client that a trusted proxy tells.
    fn admitted(&self, head: &mut RequestHead) -> Result<Option<ForwardedFor>, Declined> {
        let proxies = &self.home.settings.trusted_proxies;
        let client = proxies.tell(self.sender, self.peer, &mut head.request);
        self.admit(client).map(|()| client)
    }

    fn wait_for_request(&self, scratch: &Scratch) -> Wait {
        if !self.http.is_idle() {
            Wait::Discard
        } else if self.responded && is_blank(scratch.unread()) {
            Wait::Idle
        } else {
            Wait::Head
        }
    }

    fn discard(&mut self) -> Turn<A> {
        if self.discarded > DISCARDED_BYTES_MAX {
            self.closing = Closing::Linger;
        }
        Turn::Again
    }

    fn begin(
        &mut self,
        mut head: Box<RequestHead>,
        head_bytes: usize,
        client: Option<ForwardedFor>,
        scratch: &mut Scratch,
    ) {
        let mut exchange = self.home.take_exchange();
        let mut bytes = head_bytes;
        let body = if let Some(body) = self.whole_body(head.body, scratch) {
            bytes += usize::try_from(body.size_hint().lower()).unwrap_or_default();
            body
        } else {
            let pace = BodyPace::default();
            head.request.extensions_mut().insert(pace.clone());
            let bytes_max = self.home.settings.limits.body_bytes_max;
            let (feeder, reader) = pair(head.body, bytes_max, pace);
            *exchange.as_mut().feeder() = Some(feeder);
            *exchange.as_mut().continue_due() = head.expects_continue;
            RequestBody::streamed(reader)
        };
        let now = self.home.now();
        let logged = self.tell(&mut head.request);
        let target = std::mem::take(&mut head.target);
        let about = exchange.as_mut().about();
        about.begin(head.request.method().clone(), target, now);
        about.client = client;
        about.metered = self.meter(&head.request);
        about.logged = logged;
        exchange.as_mut().begin(head, body, bytes);
        if let Some(line) = &self.line {
            line.begin(self.http.takes_informational());
        }
        self.waiting.over(now);
        self.home.meter.count_request();
        self.exchange = Some(exchange);
    }

    /// Begins to tell of a request, if that is wanted.
    pub(super) fn tell(&mut self, request: &mut Request<()>) -> Option<Box<Logged>> {
        let head = self.take_head_since().map(|since| since.elapsed());
        let telling = (&*self.home.settings, &self.home.teller);
        let head = head.unwrap_or_default();
        let is_tls = self.socket.is_tls();
        Logged::begin(request, self.sender, telling, (head, is_tls))
    }

    /// Begins to count a request, if requests are counted.
    pub(super) fn meter(&self, request: &Request<()>) -> Option<MeteredRequest> {
        let requests = self.home.requests.as_ref()?;
        let is_tls = self.socket.is_tls();
        Some(requests.begin(request.method(), request.version(), is_tls))
    }

    /// The body, if there is none or all of it came with the head and is allowed by the server's
    /// own limit.
    fn whole_body(&mut self, length: BodyLength, scratch: &mut Scratch) -> Option<RequestBody> {
        let length = match length {
            BodyLength::None => return Some(RequestBody::empty()),
            BodyLength::Chunked => return None,
            BodyLength::Exact(length) => length,
        };
        let allowed = length <= self.home.settings.limits.body_bytes_max;
        if !allowed || length > scratch.unread().len() as u64 {
            return None;
        }
        let mut context = self.home.context.borrow_mut();
        let received = self.http.receive(scratch.unread(), &mut context).ok()?;
        let Event::Data(data) = received.event else {
            return None;
        };
        let body = RequestBody::full(Bytes::copy_from_slice(data));
        let ended = self.http.receive(&[], &mut context);
        debug_assert!(matches!(ended.map(|step| step.event), Ok(Event::End)));
        scratch.consume(received.consumed);
        Some(body)
    }

    /// Returns `true` if the application waits for more of the request's body.
    pub(super) fn body_is_wanted(&mut self, cx: &Context<'_>) -> bool {
        let Some(exchange) = &mut self.exchange else {
            return false;
        };
        let feeder = exchange.as_mut().feeder().as_ref();
        feeder.is_some_and(|feeder| feeder.is_wanted(cx))
    }

    /// Takes one step towards the next frame of a body that is wanted.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        if self.body_exceeds_limit(0) {
            return self.end_large_body();
        }
        self.say_continue(scratch);
        match self.gather(scratch) {
            Err(rejected) => self.refuse_framing(rejected, scratch),
            Ok((data, _)) if self.body_exceeds_limit(data.len()) => self.end_large_body(),
            Ok((data, behind)) if !data.is_empty() => {
                self.body_came();
                self.tell_body();
                self.feed(Frame::data(data.into()), cx);
                self.put_off(behind);
                Turn::Again
            }
            Ok((_, Behind::Nothing)) => self.read_body(cx, scratch),
            Ok((_, Behind::Trailers(trailers))) => {
                self.feed(Frame::trailers(*trailers), cx);
                Turn::Again
            }
            Ok((_, Behind::End)) => {
                self.with_feeder(|feeder| feeder.end(Ok(())));
                Turn::Again
            }
        }
    }

    /// Reads more of the body; a long one waits for its turn.
    fn read_body(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        if !self.is_body_long() {
            return self.read(Wait::Body, cx, scratch);
        }
        if !self.is_turn(cx) {
            // From now on it is not the client that is waited for, so no deadline runs.
            self.body_came();
            return Turn::Wait(Wait::Handler);
        }
        let turn = self.read(Wait::Body, cx, scratch);
        self.spend(scratch.unread().len() as u64);
        turn
    }

    /// Returns `true` if so much of the request's body has come that the rest waits for turns.
    pub(super) fn is_body_long(&mut self) -> bool {
        let mut received = 0;
        self.with_feeder(|feeder| received = feeder.received);
        received >= SHORT_BODY_BYTES
    }

    fn say_continue(&mut self, scratch: &mut Scratch) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        let due = std::mem::take(exchange.as_mut().continue_due());
        // RFC 9110, 10.1.1: needless once the client sends the body all the same.
        if due && scratch.unread().is_empty() && self.http.is_response_due() {
            scratch.out.extend_from_slice(CONTINUE);
        }
    }

    /// Takes what there is of the body from the input: data, gathered up to [`READ_BYTES_MAX`], and
    /// what came right behind it.
    fn gather(&mut self, scratch: &mut Scratch) -> Result<(Vec<u8>, Behind), Rejected> {
        let mut part = Vec::new();
        let mut trailers = None;
        self.with_feeder(|feeder| trailers = feeder.trailers.take());
        if let Some(trailers) = trailers {
            return Ok((part, Behind::Trailers(trailers)));
        }
        let mut context = self.home.context.borrow_mut();
        while part.len() < READ_BYTES_MAX {
            let Received { consumed, event } = self.http.receive(scratch.unread(), &mut context)?;
            let behind = match event {
                Event::Data(data) => {
                    part.extend_from_slice(data);
                    None
                }
                Event::Trailers(trailers) => Some(Behind::Trailers(trailers)),
                Event::End => Some(Behind::End),
                _ => Some(Behind::Nothing),
            };
            scratch.consume(consumed);
            if let Some(behind) = behind {
                return Ok((part, behind));
            }
        }
        Ok((part, Behind::Nothing))
    }

    fn tell_body(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.as_mut().about().body_came();
        }
    }

    /// Keeps what came right behind a chunk until that is taken; the end need not wait. But it is
    /// not passed on before: the reader may be on another thread, and would not see the chunk.
    fn put_off(&mut self, behind: Behind) {
        self.with_feeder(|feeder| match behind {
            Behind::Trailers(trailers) => feeder.trailers = Some(trailers),
            Behind::End => feeder.end(Ok(())),
            Behind::Nothing => {}
        });
    }

    fn feed(&mut self, part: Frame<Bytes>, cx: &Context<'_>) {
        self.with_feeder(|feeder| feeder.feed(part, cx));
    }

    fn body_exceeds_limit(&mut self, more: usize) -> bool {
        let mut exceeds = false;
        self.with_feeder(|feeder| exceeds = feeder.exceeds_limit(more));
        exceeds
    }

    /// Ends the body for the application. Its response is the last one: nobody looks where the rest
    /// of the body ends.
    fn end_large_body(&mut self) -> Turn<A> {
        self.http.close_after_response();
        self.with_feeder(|feeder| feeder.end(Err(BodyError::TooLarge)));
        Turn::Again
    }

    pub(super) fn with_feeder(&mut self, act: impl FnOnce(&mut crate::body::Feeder)) {
        if let Some(exchange) = &mut self.exchange
            && let Some(feeder) = exchange.as_mut().feeder()
        {
            act(feeder);
        }
    }

    /// Gives the connection, with what was read of it, to another server.
    fn hand_over(&mut self, protocol: Protocol, scratch: &mut Scratch) -> Turn<A> {
        if let Err(error) = self.socket.register() {
            return self.broken(&error);
        }
        let input = Bytes::copy_from_slice(scratch.unread());
        scratch.consume(input.len());
        let Some(permit) = self.permit.take() else {
            return Turn::End(Outcome::Closed);
        };
        Turn::End(Outcome::HandOver(Box::new(Handed {
            socket: std::mem::replace(&mut self.socket, super::Socket::Gone),
            unsent: std::mem::take(&mut scratch.out),
            input,
            protocol,
            service: A::Service::clone(&self.service),
            peer: self.peer,
            since: self.waiting.since,
            permit,
        })))
    }
}
