//! One client's connection as a state machine.

mod response;

use http::{HeaderMap, Method};

use response::ResponseState;
pub use response::{Part, Truncated};

use crate::body::{Decoder, Step};
use crate::head::{self, Searched};
use crate::{Context, Rejected, RequestHead};

/// The first bytes from a client that speaks HTTP/2 without asking (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One client's HTTP/1.1 connection, seen from the server.
///
/// Requests are taken one at a time: after a message is complete, [`receive`](Self::receive)
/// returns [`Event::RespondFirst`] until the response is finished, so pipelined requests are served
/// in order (RFC 9112, 9.3.2). After a [`Rejected`] it reads no more.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one connection, not a state"
)]
pub struct Connection {
    incoming: Incoming,
    response_state: ResponseState,
    searched: Searched,
    keep_alive: bool,
    /// The client asked for the end of the connection behind the request.
    is_last: bool,
    http_10: bool,
    head_method: bool,
    accepts_trailers: bool,
    ended_by_close: bool,
}

#[derive(Debug)]
enum Incoming {
    /// Nothing was received yet: the client may still turn out to speak HTTP/2.
    Fresh,
    Head,
    Body(Decoder),
    Complete,
    Refused,
}

/// The result of one step of [`Connection::receive`].
#[derive(Debug)]
pub struct Received<'a> {
    /// Bytes of the input that are done with. The rest must be offered again, with more behind it.
    pub consumed: usize,
    /// The meaning of these bytes.
    pub event: Event<'a>,
}

/// One step of a connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// The rest of the input is the beginning of something: offer it again with more behind it.
    NeedMore,
    /// The client speaks HTTP/2. Nothing was consumed: the input belongs to an HTTP/2 server.
    Http2Preface,
    /// A request begins. If its body is [`BodyLength::None`](crate::BodyLength::None), it is also
    /// complete.
    Head(Box<RequestHead>),
    /// A chunk of the body, never empty.
    Data(&'a [u8]),
    /// The fields after a chunked body. [`Event::End`] follows.
    Trailers(Box<HeaderMap>),
    /// The body is complete.
    End,
    /// The message is complete and its response is not: finish it, then go on.
    RespondFirst,
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
}

impl Connection {
    /// Creates a connection on which nothing was received.
    #[must_use]
    pub fn new() -> Self {
        Self {
            incoming: Incoming::Fresh,
            response_state: ResponseState::Finished,
            searched: Searched::default(),
            keep_alive: true,
            is_last: false,
            http_10: false,
            head_method: false,
            accepts_trailers: false,
            ended_by_close: false,
        }
    }

    /// Takes one step through `input`, which begins where the last step stopped.
    ///
    /// # Errors
    ///
    /// A [`Rejected`] if the message is malformed or over a limit. The owner responds with
    /// [`refuse`](Self::refuse) and closes.
    pub fn receive<'a>(
        &mut self,
        input: &'a [u8],
        context: &mut Context,
    ) -> Result<Received<'a>, Rejected> {
        let step = self.step(input, context);
        if step.is_err() {
            self.incoming = Incoming::Refused;
            self.keep_alive = false;
        }
        step
    }

    fn step<'a>(
        &mut self,
        input: &'a [u8],
        context: &mut Context,
    ) -> Result<Received<'a>, Rejected> {
        match &mut self.incoming {
            Incoming::Fresh => self.fresh(input, context),
            Incoming::Head => self.head(input, context),
            Incoming::Body(decoder) => {
                let (consumed, step) = decoder.decode(input, &context.limits)?;
                let event = self.body_event(step);
                Ok(Received { consumed, event })
            }
            Incoming::Complete => self.after_message(input, context),
            Incoming::Refused => Ok(nothing(Event::RespondFirst)),
        }
    }

    fn body_event<'a>(&mut self, step: Step<'a>) -> Event<'a> {
        match step {
            Step::NeedMore => Event::NeedMore,
            Step::Data(data) => Event::Data(data),
            Step::Trailers(map) => Event::Trailers(map),
            Step::End => {
                self.incoming = Incoming::Complete;
                Event::End
            }
        }
    }

    fn after_message<'a>(
        &mut self,
        input: &'a [u8],
        context: &mut Context,
    ) -> Result<Received<'a>, Rejected> {
        if !self.may_go_on() {
            return Ok(nothing(Event::RespondFirst));
        }
        self.incoming = Incoming::Head;
        self.head(input, context)
    }

    fn may_go_on(&self) -> bool {
        matches!(self.response_state, ResponseState::Finished) && self.keep_alive
    }

    fn fresh<'a>(
        &mut self,
        input: &'a [u8],
        context: &mut Context,
    ) -> Result<Received<'a>, Rejected> {
        let compared = input.len().min(HTTP2_PREFACE.len());
        if input[..compared] == HTTP2_PREFACE[..compared] {
            return Ok(nothing(if compared == HTTP2_PREFACE.len() {
                Event::Http2Preface
            } else {
                Event::NeedMore
            }));
        }
        self.incoming = Incoming::Head;
        self.head(input, context)
    }

    fn head<'a>(
        &mut self,
        input: &'a [u8],
        context: &mut Context,
    ) -> Result<Received<'a>, Rejected> {
        if !self.searched.is_worth_parsing(input, &context.limits) {
            return Ok(nothing(Event::NeedMore));
        }
        let parsed = head::parse(input, context)
            .inspect_err(|_| self.owe_rejection(head::is_head_method(input)))?;
        let Some((head, consumed)) = parsed else {
            self.searched.note(input);
            return Ok(nothing(Event::NeedMore));
        };
        self.searched = Searched::default();
        // Stays false if `close_after_response` was called while the head was still arriving.
        self.keep_alive &= head.keep_alive;
        self.is_last = !head.keep_alive;
        self.http_10 = head.request.version() == http::Version::HTTP_10;
        self.head_method = *head.request.method() == Method::HEAD;
        self.accepts_trailers = head.accepts_trailers;
        self.response_state = ResponseState::Due;
        self.incoming = match Decoder::new(head.body) {
            Some(decoder) => Incoming::Body(decoder),
            None => Incoming::Complete,
        };
        Ok(Received {
            consumed,
            event: Event::Head(head),
        })
    }

    /// Forgets the request before a malformed one, whose response must not be framed as if it were
    /// the other's.
    fn owe_rejection(&mut self, head_method: bool) {
        self.response_state = ResponseState::Due;
        self.head_method = head_method;
        self.http_10 = false;
        self.accepts_trailers = false;
    }

    /// Returns `true` if the request under way was received to its end.
    #[must_use]
    pub fn is_received(&self) -> bool {
        matches!(self.incoming, Incoming::Complete)
    }

    /// Returns `true` if the connection is between requests (or before the first), with none begun.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        match self.incoming {
            Incoming::Fresh | Incoming::Head => true,
            Incoming::Complete => self.may_go_on(),
            Incoming::Body(_) | Incoming::Refused => false,
        }
    }

    /// Returns `true` if another request may follow once this one is received and its response
    /// sent.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// Returns `true` if the client asked for the end of the connection behind the last request: it
    /// sends no other.
    #[must_use]
    pub fn is_last_of_client(&self) -> bool {
        self.is_last
    }

    /// Makes the response under way the last: its head, if not yet sent, says `Connection: close`.
    pub fn close_after_response(&mut self) {
        self.keep_alive = false;
    }

    /// Returns `true` if a request awaits the head of its response.
    #[must_use]
    pub fn is_response_due(&self) -> bool {
        matches!(self.response_state, ResponseState::Due)
    }

    /// Returns `true` if a response has begun and was not [finished](Self::finish).
    #[must_use]
    pub fn is_responding(&self) -> bool {
        matches!(self.response_state, ResponseState::Body(_))
    }

    /// Returns `true` if the end of the connection is the end of the response's body: one of
    /// unknown size for HTTP/1.0 (RFC 9112, 6.3). If such a body is aborted, the connection must be
    /// reset: after an orderly end the client would take what it has for the whole (RFC 9112, 8).
    #[must_use]
    pub fn is_ended_by_close(&self) -> bool {
        self.ended_by_close
    }

    /// Returns `true` if an [`informational`](crate::informational) response may be sent now: a
    /// request awaits the head of its response, and its client speaks HTTP/1.1 (RFC 9110, 15.2).
    #[must_use]
    pub fn takes_informational(&self) -> bool {
        self.is_response_due() && !self.http_10
    }
}

fn nothing(event: Event<'_>) -> Received<'_> {
    Received { consumed: 0, event }
}

/// The bytes of `100 Continue` (RFC 9110, 15.2.1), to be sent when the application asks for the
/// body of a request that expects it.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
