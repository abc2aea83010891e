//! One client's connection: reads requests, has them handled, writes the responses.
//!
//! A connection is a state machine that takes *turns* until it must wait. It owns no buffer of its
//! own while it waits, but for input that is not a whole request yet and output that its client
//! does not take.

mod closing;
mod declining;
mod exchange;
mod file_sender;
mod outbox;
mod requesting;
mod responding;
mod scratch;
mod socket;
mod taking;
mod waiting;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

pub(crate) use closing::LINGER_BYTES_MAX;
pub(crate) use declining::{Declined, OUT_OF_MEMORY};
pub(crate) use exchange::{About, Exchange, message};
pub(crate) use scratch::Scratch;
pub(crate) use socket::Socket;
pub(crate) use taking::Taking;
pub(crate) use waiting::LINGER;

use crate::access;
use crate::app::App;
use crate::body::BodyError;
use crate::event_loop::{Key, Loop, Permit, Ticket};
use crate::handover::Handed;
use crate::listen::{Accepted, Security};
use crate::proxies::Sender;
use crate::request_handle::Line;
use closing::{Closing, Leaving};
use outbox::Outbox;
use waiting::{Wait, Waiting};

/// Turns that a connection may take before the others of its loop get theirs: each may be a request
/// that its client sent ahead.
const TURNS_MAX: usize = 128;
/// After so many turns the clock is read, and then after so many more.
const TURNS_CLOCKED: usize = 4;
/// The time for which a connection may take turns, and some turns more.
const SLICE_MAX: Duration = Duration::from_micros(500);

/// One client's connection, on its loop.
pub(crate) struct Connection<A: App> {
    home: Rc<Loop<A>>,
    permit: Option<Permit>,
    socket: Socket,
    /// On the heap, where it fills what the allocator leaves between tasks, which it aligns.
    service: Box<A::Service>,
    peer: Option<SocketAddr>,
    sender: Sender,
    http: greenroom_http::Connection,
    exchange: Option<Pin<Box<Exchange<A>>>>,
    /// Shared with the handles of its requests, for as long as there are any.
    line: Option<Arc<Line>>,
    kept: Box<[u8]>,
    /// Bytes that it holds, as it last told the server; no more than 4 GiB are counted.
    held: u32,
    outbox: Outbox,
    /// There once its client has been waited for to take something.
    taking: Option<Box<Taking>>,
    waiting: Waiting,
    closing: Closing,
    /// Its key in the loop's registry, once it had to wait.
    key: Option<Key>,
    /// Bytes of a body that nobody reads, passed over so that the connection can be kept.
    discarded: usize,
    /// Its requests are sent on to where there is TLS.
    is_redirected: bool,
    aside: Option<Box<Aside>>,
    /// Its first request has its response.
    responded: bool,
    /// The client ended its side.
    ended: bool,
    /// There while the body of a response to a client that ended its side has nothing to send.
    silence: Option<Pin<Box<Sleep>>>,
    leaving: Leaving,
}

/// The facts about a connection that few have at a time.
#[derive(Debug, Default)]
struct Aside {
    /// There while it waits for its next slice of time, and in that.
    ticket: Option<Ticket>,
    /// Since when there is a part of a head, if somebody wants to know.
    head_since: Option<Instant>,
}

/// Bytes that are read at once. All that is read of a body is handed over, and nothing kept.
const READ_BYTES_MAX: usize = 64 * 1_024;

/// The first bytes of a body, which wait for no turn.
pub(crate) const SHORT_BODY_BYTES: u64 = 16 * 1_024;

/// The result of serving a connection.
pub(crate) enum Outcome<A: App> {
    /// Nothing.
    Closed,
    /// It speaks a protocol that another serves. Boxed: each turn of every connection returns this
    /// type.
    HandOver(Box<Handed<A>>),
}

/// The result of a turn.
enum Turn<A: App> {
    Again,
    Wait(Wait),
    End(Outcome<A>),
}

impl<A: App> Connection<A> {
    pub(crate) fn new(
        home: Rc<Loop<A>>,
        service: A::Service,
        accepted: Accepted,
        permit: Permit,
    ) -> Self {
        let peer = accepted.info.peer;
        let proxies = &home.settings.trusted_proxies;
        Self {
            sender: proxies.sender(peer),
            permit: Some(permit),
            is_redirected: accepted.security == Security::Redirected,
            socket: accepted.socket.into(),
            service: Box::new(service),
            peer,
            http: greenroom_http::Connection::new(),
            exchange: None,
            line: None,
            kept: accepted.input.into(),
            held: 0,
            outbox: Outbox::default(),
            taking: None,
            waiting: Waiting::for_first_head(home.now(), accepted.deferred),
            closing: Closing::No,
            key: None,
            discarded: 0,
            aside: None,
            responded: false,
            ended: false,
            silence: None,
            leaving: Leaving::No,
            home,
        }
    }

    /// Has the runtime tell when the socket is ready, and the loop when time is up.
    pub(crate) fn register(&mut self) -> io::Result<()> {
        self.socket.register()?;
        self.key = Some(self.home.registry().add());
        Ok(())
    }

    pub(crate) fn into_home(self) -> Rc<Loop<A>> {
        Rc::clone(&self.home)
    }

    /// Serves for as long as there is something to do. Pending on a fresh connection means that it
    /// must be registered and polled again.
    pub(crate) fn poll_served(&mut self, cx: &mut Context<'_>) -> Poll<Outcome<A>> {
        self.home.count_poll();
        if let Some(watch) = self.home.watch() {
            watch.connection_begins();
        }
        let mut scratch = self.home.take_scratch();
        scratch.load(&mut self.kept);
        let outcome = self.drive(cx, &mut scratch);
        scratch.save(&mut self.kept);
        self.home.give_scratch(scratch);
        self.note_held();
        if let Some(watch) = self.home.watch() {
            watch.connection_ends();
        }
        outcome
    }

    fn drive(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<Outcome<A>> {
        if let Some(key) = self.key {
            let notice = self.home.registry().notice(key, cx);
            if let Some(outcome) = self.handle_notice(notice, scratch) {
                return Poll::Ready(outcome);
            }
        }
        if let Some(aside) = &mut self.aside
            && aside.ticket.is_some()
            && !self.home.bulk.is_turn(&mut aside.ticket, cx)
        {
            return self.wait(self.wait_for_slice(), cx, scratch);
        }
        match self.take_turns(cx, scratch) {
            (Turn::Again, _) => {
                // The others of the loop go first, and what has come meanwhile.
                let aside = self.aside.get_or_insert_default();
                self.home.bulk.spend_round(&mut aside.ticket, cx);
                self.wait(self.wait_for_slice(), cx, scratch)
            }
            (Turn::Wait(wait), turns) => {
                self.end_slice(turns);
                self.wait(wait, cx, scratch)
            }
            (Turn::End(outcome), turns) => {
                self.end_slice(turns);
                Poll::Ready(outcome)
            }
        }
    }

    /// The wait for the next slice, in which no deadline runs but that of taking leave.
    fn wait_for_slice(&self) -> Wait {
        match self.closing {
            Closing::Lingering => Wait::Linger,
            Closing::No | Closing::Flush | Closing::Linger => Wait::Handler,
        }
    }

    /// Takes turns until it must wait, or has had its time; returns how many, too.
    fn take_turns(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> (Turn<A>, usize) {
        let mut begun = None;
        for turn in 1..=TURNS_MAX {
            match self.turn(cx, scratch) {
                Turn::Again => {}
                end => return (end, turn),
            }
            if turn % TURNS_CLOCKED == 0 {
                let now = Instant::now();
                if now - *begun.get_or_insert(now) > SLICE_MAX {
                    break;
                }
            }
        }
        (Turn::Again, TURNS_MAX)
    }

    /// Ends a slice after so many turns. The round is over with it, unless they were few.
    fn end_slice(&mut self, turns: usize) {
        if let Some(aside) = &mut self.aside
            && aside.ticket.is_some()
        {
            let is_short = turns < TURNS_CLOCKED;
            self.home.bulk.end_turn(&mut aside.ticket, is_short);
            self.aside.take_if(|aside| aside.head_since.is_none());
        }
    }

    /// Returns the moment since which there was a part of the head, and forgets it.
    fn take_head_since(&mut self) -> Option<Instant> {
        let since = self.aside.as_mut()?.head_since.take();
        self.aside.take_if(|aside| aside.ticket.is_none());
        since
    }

    fn turn(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        if !self.outbox.is_empty() {
            if !self.is_turn(cx) {
                return Turn::Wait(Wait::Write);
            }
            match self.poll_outbox(cx) {
                Poll::Pending => return Turn::Wait(self.outbox_wait()),
                Poll::Ready(Err(error)) => return self.broken(&error),
                Poll::Ready(Ok(())) => {}
            }
        }
        match (&self.exchange, self.closing) {
            (_, Closing::Flush | Closing::Linger | Closing::Lingering) => self.close(cx, scratch),
            (Some(exchange), Closing::No) if exchange.is_responding() => self.respond(cx, scratch),
            (Some(_), Closing::No) => self.handle(cx, scratch),
            (None, Closing::No) => self.request(cx, scratch),
        }
    }

    /// Returns `true` if the connection may move more of a long body. Otherwise it is woken when it
    /// may: what else the loop has to do, and what has come meanwhile, goes first.
    fn is_turn(&mut self, cx: &Context<'_>) -> bool {
        let Some(exchange) = &mut self.exchange else {
            return true;
        };
        self.home.bulk.is_turn(exchange.as_mut().ticket(), cx)
    }

    /// Counts bytes of a long body that were moved.
    fn spend(&mut self, bytes: u64) {
        if let Some(exchange) = &mut self.exchange {
            self.home.bulk.spend(bytes, exchange.as_mut().ticket());
        }
    }

    /// The wait of an outbox that is not empty: for the client, or for a file on a disk.
    fn outbox_wait(&self) -> Wait {
        if self.outbox.is_reading() {
            Wait::Handler
        } else {
            Wait::Write
        }
    }

    fn poll_outbox(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (before, given) = (self.outbox.taken(), self.outbox.given());
        let flushed = self.outbox.poll_flush(&mut self.socket, cx);
        self.spend(self.outbox.given() - given);
        if self.outbox.taken() > before {
            self.count_taken();
        }
        flushed
    }

    /// Sends what the turns so far have written; pending if the client does not take it all.
    fn poll_flush(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<()>> {
        if scratch.out.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.outbox
            .poll_send_bytes(&mut scratch.out, &mut self.socket, cx)
    }

    /// Waits, but not with anything unsent.
    fn wait(
        &mut self,
        wait: Wait,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Poll<Outcome<A>> {
        let wait = match self.poll_flush(cx, scratch) {
            Poll::Ready(Ok(())) => wait,
            Poll::Pending => Wait::Write,
            Poll::Ready(Err(error)) => {
                self.broken(&error);
                return Poll::Ready(Outcome::Closed);
            }
        };
        self.note_wait(wait);
        Poll::Pending
    }

    /// Reads more input. Output goes first: the client may wait for it before it sends more.
    fn read(&mut self, wait: Wait, cx: &mut Context<'_>, scratch: &mut Scratch) -> Turn<A> {
        match self.poll_flush(cx, scratch) {
            Poll::Ready(Ok(())) => {}
            Poll::Pending => return Turn::Wait(Wait::Write),
            Poll::Ready(Err(error)) => return self.broken(&error),
        }
        if self.responded && matches!(self.socket, Socket::Fresh(_)) {
            // The next request is hardly there yet: let the runtime say when.
            return Turn::Wait(wait);
        }
        match self.socket.poll_read(scratch.room_for(READ_BYTES_MAX), cx) {
            Poll::Pending => Turn::Wait(wait),
            Poll::Ready(Ok(0)) => self.end_of_input(),
            Poll::Ready(Ok(bytes)) => {
                scratch.filled(bytes);
                self.waiting.heard();
                Turn::Again
            }
            Poll::Ready(Err(error)) => self.broken(&error),
        }
    }

    /// The client can be reached no more. That is its right, and nothing to warn of.
    fn broken(&mut self, error: &io::Error) -> Turn<A> {
        tracing::debug!(%error, peer = ?self.peer, "a connection broke");
        self.end_of_input()
    }

    /// Ends the input: a reader of the body learns so. A client that lacks no response is told that
    /// none follows.
    fn end_of_input(&mut self) -> Turn<A> {
        if self.exchange.is_none() && self.outbox.is_empty() {
            self.socket.end();
        }
        self.with_feeder(|feeder| feeder.end(Err(BodyError::Disconnected)));
        self.cut_exchange();
        Turn::End(Outcome::Closed)
    }

    /// Forgets the request under way, which gets no response or not the whole of it.
    fn cut_exchange(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            let about = exchange.as_mut().about();
            about.cut = true;
            about.sent -= self.outbox.left_of_file();
            access::end(about, self.peer);
        }
        self.drop_exchange();
    }

    /// Forgets the request under way; its place is used again.
    fn drop_exchange(&mut self) {
        self.silence = None;
        if let Some(mut exchange) = self.exchange.take() {
            exchange.as_mut().clear();
            self.home.give_exchange(exchange);
        }
        match &self.line {
            // Nobody has a handle any more: later requests pay for a line only if they ask for one.
            Some(line) if Arc::strong_count(line) == 1 => self.line = None,
            Some(line) => line.end(),
            None => {}
        }
    }
}

impl<A: App> Drop for Connection<A> {
    fn drop(&mut self) {
        let is_sent = !self.http.is_responding() && self.outbox.is_empty();
        if self.http.is_ended_by_close() && !is_sent {
            self.socket.reset_at_end();
        }
        self.drop_exchange();
        if self.held > 0 {
            self.home.memory.change(self.held as usize, 0);
        }
        if let Some(key) = self.key {
            self.home.registry().remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::Ready;

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use tower_service::Service;

    use super::*;
    use crate::SharedService;
    use crate::body::RequestBody;

    #[derive(Clone)]
    struct Nothing;

    impl Service<Request<RequestBody>> for Nothing {
        type Response = Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
            std::future::ready(Ok(Response::default()))
        }
    }

    /// With tokio's own 96 bytes, 288 make a task of 384, which tokio aligns to 128. In debug
    /// builds mio keeps with each socket where it is registered.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn an_idle_connection_is_small() {
        let of_debug_builds = if cfg!(debug_assertions) { 8 } else { 0 };
        assert!(size_of::<Connection<SharedService<Nothing>>>() <= 288 + of_debug_builds);
    }
}
