//! The ends of a connection: rejections, time-outs, drain, and taking leave of the client.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use greenroom_http::Rejected;
use http::{Response, StatusCode};
use tokio::time::sleep;

use super::waiting::{HALF_CLOSED, Wait};
use super::{Connection, Outcome, READ_BYTES_MAX, Scratch, Turn};
use crate::access;
use crate::app::App;
use crate::body::BodyError;
use crate::drain::{Aborted, Phase};
use crate::event_loop::Notice;
use crate::rejection::Rejection;

/// Most bytes that are read from a client after it was told that the connection ends: enough for an
/// upload that was refused to run out, where it would else break before its response is read.
pub(crate) const LINGER_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// Longest pause of a body that is sent to a client which has ended its side: more than a stage or
/// a disk takes for the next chunk, so that only what waits for events is given up.
const SILENCE_MAX: Duration = Duration::from_millis(20);

/// The end of a connection that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    No,
    /// Closes once all is sent.
    Flush,
    /// Closes once all is sent and the client has had time to read it. A socket that is closed with
    /// unread input is reset, and the reset may overtake the last response (RFC 9112, 9.6).
    Linger,
    /// The same, and all is sent.
    Lingering,
}

/// The reason, other than a drain, for ending a connection as soon as no request is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    No,
    /// It was idle for too long, or for the grace of a drain.
    Expired,
    /// Its descriptor is needed for another.
    Evicted,
}

impl<A: App> Connection<A> {
    /// Handles the loop's notice; returns the outcome if that ends the connection at once.
    pub(super) fn handle_notice(
        &mut self,
        notice: Notice,
        scratch: &mut Scratch,
    ) -> Option<Outcome<A>> {
        if notice.evicted {
            self.leaving = Leaving::Evicted;
        }
        if self.home.phase() == Phase::Ending {
            if !self.outbox.is_empty() {
                self.socket.reset_at_end();
            }
            self.report_cut();
            return Some(Outcome::Closed);
        }
        if !notice.expired {
            return None;
        }
        match self.waiting.wait {
            Wait::Head => {
                let status = StatusCode::REQUEST_TIMEOUT;
                self.reject(&Rejection::new(status, "request head too slow"), scratch);
                None
            }
            Wait::Body if self.takes_any_pace() => None,
            Wait::Body => match self.refuse_body(BodyError::TooSlow, scratch) {
                Turn::End(outcome) => Some(outcome),
                Turn::Again | Turn::Wait(_) => None,
            },
            Wait::Handler => None,
            Wait::Watch => {
                let has_ended = self.socket.has_ended();
                let long_since = self.waiting.look_again(self.home.now(), has_ended);
                // Its body is there, as far as it comes, and the application takes none of it.
                let is_over = has_ended && long_since && !self.http.is_responding();
                if is_over && !self.home.settings.half_close {
                    return self.leave_to_its_end();
                }
                None
            }
            Wait::HalfClosed => self.leave_to_its_end(),
            Wait::Idle | Wait::Grace => {
                if self.leaving == Leaving::No {
                    self.leaving = Leaving::Expired;
                }
                None
            }
            Wait::Write => self.give_up_untaken(),
            Wait::Discard | Wait::Linger => {
                self.cut_exchange();
                Some(Outcome::Closed)
            }
        }
    }

    fn leave_to_its_end(&mut self) -> Option<Outcome<A>> {
        match self.end_of_input() {
            Turn::End(outcome) => Some(outcome),
            Turn::Again | Turn::Wait(_) => None,
        }
    }

    fn give_up_untaken(&mut self) -> Option<Outcome<A>> {
        if !self.is_taken_too_slowly() {
            return None;
        }
        // Else the system would keep what is unsent for minutes, for a client that takes none of
        // it.
        self.socket.reset_at_end();
        self.cut_exchange();
        Some(Outcome::Closed)
    }

    /// Decides whether a client that has just ended its side is gone. One that only has no more to
    /// send says so behind its request; one that does so later has most likely left.
    pub(super) fn has_left(&mut self) -> bool {
        if self.socket.is_hung_up() {
            return true;
        }
        let is_working = match self.waiting.wait {
            Wait::Handler => true,
            Wait::Watch => !self.http.is_responding(),
            _ => false,
        };
        let is_late = self.home.age(self.waiting.since) > HALF_CLOSED;
        is_working && is_late && !self.home.settings.half_close
    }

    /// Waits for a client that ended its side, and may have left: for a response that begins soon,
    /// and for a body that does not pause.
    pub(super) fn wait_half_closed(&mut self, cx: &mut Context<'_>) -> Turn<A> {
        let exchange = self.exchange.as_ref();
        if !exchange.is_some_and(|exchange| exchange.is_responding()) {
            return Turn::Wait(Wait::HalfClosed);
        }
        let pause = || Box::pin(sleep(SILENCE_MAX));
        match self.silence.get_or_insert_with(pause).as_mut().poll(cx) {
            Poll::Ready(()) => self.end_of_input(),
            Poll::Pending => Turn::Wait(Wait::Handler),
        }
    }

    fn report_cut(&mut self) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        let about = exchange.as_mut().about();
        self.home.cut(Aborted {
            route: about.route(),
            age: self.home.age(about.since),
            peer: self.peer,
        });
        self.cut_exchange();
    }

    /// Responds to a malformed message, which no application sees.
    pub(super) fn refuse(&mut self, rejected: Rejected, scratch: &mut Scratch) -> Turn<A> {
        tracing::debug!(reason = %rejected, peer = ?self.peer, "refused a request");
        if self.home.settings.telling.access_log {
            access::log_rejection(rejected.status(), self.peer);
        }
        let detail = rejected.to_string();
        let rejection = Rejection::new(rejected.status(), &detail);
        let response = self.home.settings.rejections.response(&rejection);
        let context = self.home.context.borrow();
        self.http.refuse(&response, &context, &mut scratch.out);
        drop(context);
        self.closing = Closing::Linger;
        Turn::Again
    }

    /// Responds to a body whose framing is broken.
    pub(super) fn refuse_framing(&mut self, rejected: Rejected, scratch: &mut Scratch) -> Turn<A> {
        tracing::debug!(reason = %rejected, peer = ?self.peer, "refused a body");
        self.refuse_body(BodyError::Malformed, scratch)
    }

    /// Responds to a request whose body will not be read to its end: the handler is dropped, and if
    /// its response has not begun, the client gets the error's status.
    pub(super) fn refuse_body(&mut self, error: BodyError, scratch: &mut Scratch) -> Turn<A> {
        self.with_feeder(|feeder| feeder.end(Err(error)));
        let detail = error.to_string();
        if !self.http.is_response_due() {
            self.cut_exchange();
            return Turn::End(Outcome::Closed);
        }
        let rejection = Rejection::new(error.status(), &detail);
        self.respond_instead(rejection, scratch);
        Turn::Again
    }

    /// Ends the connection with the response to what is no request yet.
    pub(super) fn reject(&mut self, rejection: &Rejection<'_>, scratch: &mut Scratch) {
        let response = self.home.settings.rejections.response(rejection);
        self.dismiss(&response, scratch);
    }

    /// Drops the handler of the request under way, whose response has not begun, and responds in
    /// its place.
    pub(super) fn respond_instead(&mut self, rejection: Rejection<'_>, scratch: &mut Scratch) {
        let Some(mut exchange) = self.exchange.take() else {
            return self.reject(&rejection, scratch);
        };
        let about = exchange.as_mut().about();
        about.status = Some(rejection.status);
        let rejection = rejection.of(about);
        let mut response = self.home.settings.rejections.response(&rejection);
        about.respond(response.headers_mut());
        about.sent = self.dismiss(&response, scratch) as u64;
        access::end(about, self.peer);
        self.exchange = Some(exchange);
        self.drop_exchange();
    }

    /// Sends a response of the server's own and ends the connection. Returns the bytes of its body
    /// that are sent.
    fn dismiss(&mut self, response: &Response<Bytes>, scratch: &mut Scratch) -> usize {
        let context = self.home.context.borrow();
        let sent = self.http.dismiss(response, &context, &mut scratch.out);
        drop(context);
        self.closing = Closing::Linger;
        sent
    }

    /// Returns `true` if the request under way, or the next if there is none, is the last.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving != Leaving::No || self.home.phase() != Phase::Serving
    }

    /// Ends an idle connection, unless its next request is there already, or comes within the grace
    /// of a drain: that one is served, as the last. A socket that is closed with a request unread,
    /// or on its way, is reset, and its client cannot know whether the request was served.
    pub(super) fn leave(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        if self.leaving == Leaving::No && !self.home.settings.limits.drain_grace.is_zero() {
            return self.read(Wait::Grace, cx, scratch);
        }
        match self.poll_flush(cx, scratch) {
            Poll::Ready(Ok(())) => {}
            Poll::Pending => return Turn::Wait(Wait::Write),
            Poll::Ready(Err(error)) => return self.broken(&error),
        }
        match self.socket.look(scratch.room_for(READ_BYTES_MAX), cx) {
            Poll::Ready(Ok(0)) => self.end_of_input(),
            Poll::Ready(Ok(bytes)) => {
                scratch.filled(bytes);
                self.waiting.heard();
                Turn::Again
            }
            Poll::Ready(Err(error)) => self.broken(&error),
            Poll::Pending => {
                self.closing = match self.leaving {
                    // Somebody waits for its descriptor.
                    Leaving::Evicted => Closing::Flush,
                    Leaving::Expired | Leaving::No => Closing::Linger,
                };
                Turn::Again
            }
        }
    }

    /// Takes one step towards the end of the connection.
    pub(super) fn close(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        match self.poll_flush(cx, scratch) {
            Poll::Ready(Ok(())) => {}
            Poll::Pending => return Turn::Wait(Wait::Write),
            Poll::Ready(Err(_)) => return Turn::End(Outcome::Closed),
        }
        if self.closing == Closing::Flush {
            return match self.socket.poll_close(cx) {
                Poll::Ready(()) => Turn::End(Outcome::Closed),
                Poll::Pending => Turn::Wait(Wait::Write),
            };
        }
        self.linger(cx, scratch)
    }

    fn linger(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        if self.closing != Closing::Lingering {
            self.closing = Closing::Lingering;
            self.discarded = 0;
        }
        // What is pending of it goes on with the reading below.
        let _ended = self.socket.poll_shutdown(cx);
        scratch.consume(scratch.unread().len());
        match self.socket.poll_read(scratch.room_for(READ_BYTES_MAX), cx) {
            Poll::Pending => return Turn::Wait(Wait::Linger),
            Poll::Ready(Ok(0) | Err(_)) => return Turn::End(Outcome::Closed),
            Poll::Ready(Ok(bytes)) => self.discarded += bytes,
        }
        if self.discarded > LINGER_BYTES_MAX {
            return Turn::End(Outcome::Closed);
        }
        Turn::Again
    }
}
