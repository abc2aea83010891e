use http::{HeaderMap, Response, StatusCode};

use super::Connection;
use crate::encode::{self, BodySize, Framing, Persistence};
use crate::{Context, FieldNames, ReasonPhrase};

/// The state of the response to the request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseState {
    Due,
    Body(Framing),
    Finished,
}

/// A response ended before the length that its head promised. The connection must close, so that
/// the client sees it as truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body ended {missing} bytes before its Content-Length")]
pub struct Truncated {
    /// Bytes that were promised and not sent.
    pub missing: u64,
}

/// Framing of a chunk of the body that was announced to [`Connection::data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a part is framed only with its end behind it"]
pub struct Part {
    /// Bytes of the chunk to send: fewer than announced only if the body is longer than its
    /// `Content-Length`. The rest must not be sent.
    pub length: usize,
    /// The bytes to send right behind them, before anything is awaited: the CR LF of a chunk, or
    /// nothing. Many clients give a chunk to their user only when they have read it to its end.
    pub end: &'static [u8],
}

impl Connection {
    /// Appends the head of the response to `out`.
    ///
    /// Framing is the server's: `Content-Length` follows from `size` (if that is unknown, the
    /// application's own `Content-Length` is taken and kept to), else the body is chunked, or for
    /// HTTP/1.0 ended by closing. `Transfer-Encoding`, `Connection` and `Keep-Alive` of the
    /// application are not sent, but its `Connection: close` is obeyed.
    ///
    /// A [`ReasonPhrase`] among the response's extensions is sent with its status, and
    /// [`FieldNames`] give the spelling of field names, which are in lower case without.
    ///
    /// An informational status is no final response (RFC 9110, 15.2): the client would take the
    /// next request's response for this one's. It is sent as a 500, and the connection closes.
    pub fn respond<B>(
        &mut self,
        response: &Response<B>,
        size: BodySize,
        context: &Context,
        out: &mut Vec<u8>,
    ) {
        let status = encode::final_status(response.status());
        let reason = response.extensions().get::<ReasonPhrase>();
        let reason = reason.filter(|_| status == response.status());
        encode::status_line(status, reason, out);
        let names = response.extensions().get::<FieldNames>();
        let noted = encode::fields(response.headers(), names, out);
        let (framing, length) = self.frame(status, noted.length, size);
        self.ended_by_close = framing == Framing::Close;
        if noted.close || self.ended_by_close || status != response.status() {
            self.keep_alive = false;
        }
        if noted.upgrade {
            // RFC 9110, 7.8: a sender of `Upgrade` (with 426, say) names it in `Connection`.
            out.extend_from_slice(b"Connection: upgrade\r\n");
        }
        let date = Some(&context.date).filter(|_| !noted.dated);
        encode::end_of_head(framing, length, self.persistence(), date, out);
        self.response_state = ResponseState::Body(framing);
    }

    fn frame(
        &self,
        status: StatusCode,
        declared: Option<u64>,
        size: BodySize,
    ) -> (Framing, Option<u64>) {
        if encode::is_bodyless(status) {
            return (
                Framing::None,
                encode::length_of_bodyless(status, declared, size),
            );
        }
        let length = match size {
            // RFC 9110, 15.3.6: the response that resets a form has no content.
            _ if status == StatusCode::RESET_CONTENT => Some(0),
            // Nothing to send for HEAD does not mean that a GET would get nothing.
            BodySize::Exact(0) if self.head_method => declared,
            BodySize::Exact(length) => Some(length),
            BodySize::Unknown => declared,
        };
        if self.head_method {
            return (Framing::None, length);
        }
        match length {
            Some(bytes) => (Framing::Length(bytes), length),
            None if self.http_10 => (Framing::Close, None),
            None => (Framing::Chunked, None),
        }
    }

    fn persistence(&self) -> Persistence {
        match (self.keep_alive, self.http_10) {
            (false, _) => Persistence::Close,
            (true, true) => Persistence::KeepAlive,
            (true, false) => Persistence::Implicit,
        }
    }

    /// Returns `true` if the response under way has a body on the wire; if not, its producer need
    /// not run.
    #[must_use]
    pub fn sends_body(&self) -> bool {
        let bodyless = matches!(
            self.response_state,
            ResponseState::Body(Framing::None | Framing::Length(0)) | ResponseState::Finished
        );
        !bodyless
    }

    /// Announces `length` bytes of the body and appends the framing before them to `out`. The owner
    /// then sends the returned number of bytes, and [`Part::end`] behind them.
    pub fn data(&mut self, length: usize, out: &mut Vec<u8>) -> Part {
        let mut part = Part { length, end: b"" };
        match &mut self.response_state {
            ResponseState::Body(Framing::Close) => {}
            ResponseState::Body(Framing::Length(left)) => {
                part.length = usize::try_from(*left).map_or(length, |left| left.min(length));
                *left -= part.length as u64;
            }
            // A chunk of no bytes would end the body.
            ResponseState::Body(Framing::Chunked) if length > 0 => {
                encode::chunk_start(length, out);
                part.end = encode::CHUNK_END;
            }
            _ => part.length = 0,
        }
        part
    }

    /// Returns how much of the length that the head promised is not announced so far; 0 if it
    /// promised none.
    #[must_use]
    pub fn left(&self) -> u64 {
        match self.response_state {
            ResponseState::Body(Framing::Length(left)) => left,
            _ => 0,
        }
    }

    /// Announces all that is [left](Self::left), and returns how much: bytes that need no framing.
    pub fn rest(&mut self) -> u64 {
        match &mut self.response_state {
            ResponseState::Body(Framing::Length(left)) => std::mem::take(left),
            _ => 0,
        }
    }

    /// Ends the response, appending what ends the body. Trailers are sent only in a chunked body
    /// and only to a client that said `TE: trailers` (RFC 9110, 6.5.1).
    ///
    /// # Errors
    ///
    /// [`Truncated`] if fewer bytes were sent than promised.
    pub fn finish(
        &mut self,
        trailers: Option<&HeaderMap>,
        out: &mut Vec<u8>,
    ) -> Result<(), Truncated> {
        let state = std::mem::replace(&mut self.response_state, ResponseState::Finished);
        match state {
            ResponseState::Body(Framing::Chunked) => {
                let trailers = trailers.filter(|_| self.accepts_trailers);
                encode::chunks_end(trailers, out);
            }
            ResponseState::Body(Framing::Length(missing)) if missing > 0 => {
                self.keep_alive = false;
                return Err(Truncated { missing });
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends the whole response to a refused message, and `Connection: close`. Appends nothing if
    /// the body is malformed and the request's response has already begun: the client would take a
    /// second one for its next request's.
    pub fn refuse<T>(&mut self, response: &Response<T>, context: &Context, out: &mut Vec<u8>)
    where
        T: AsRef<[u8]>,
    {
        self.keep_alive = false;
        if self.response_state == ResponseState::Due {
            self.dismiss(response, context, out);
        }
    }

    /// Appends a whole response of the server's own, and ends the connection with it. Returns the
    /// bytes of its body that are sent: none to HEAD.
    pub fn dismiss<T>(
        &mut self,
        response: &Response<T>,
        context: &Context,
        out: &mut Vec<u8>,
    ) -> usize
    where
        T: AsRef<[u8]>,
    {
        self.keep_alive = false;
        if self.response_state != ResponseState::Due {
            // No request stands behind this response: it must not be framed as for the one before.
            self.owe_rejection(false);
        }
        let body = response.body().as_ref();
        self.respond(response, BodySize::Exact(body.len() as u64), context, out);
        let sent = self.data(body.len(), out).length;
        out.extend_from_slice(&body[..sent]);
        self.response_state = ResponseState::Finished;
        sent
    }
}
