//! Handshakes of TLS: work that strangers cause. A loop takes one step of one handshake in each of
//! its turns, so that what is ready beside them waits for one at most.

mod turns;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::acceptor::{begin, permit_of};
use super::{Loop, Permit, tasks};
use crate::ConnectionInfo;
use crate::addresses::Owner;
use crate::app::App;
use crate::listen::{Accepted, AcceptedSocket, Security, Unread};
use crate::memory::Held;
use crate::rejection::Rejection;
use crate::tls::{ACME_PROTOCOL, Hello, Tls, TlsStream};
use turns::Turns;

/// The time of a turn of the loop, before any is known.
const TURN_TIME: Duration = Duration::from_micros(200);
/// A turn that takes longer counts as this long: one that stands still is no measure of the next.
const TURN_TIME_MAX: Duration = Duration::from_millis(20);
/// Weight of the turns before: that of the last is a sixteenth.
const TURNS_WEIGHED: u32 = 16;

/// The reasons why a connection does not come to the end of its handshake.
#[derive(Debug, thiserror::Error)]
enum Unshaken {
    #[error("it would wait too long for its first step")]
    Busy,
    #[error("the client speaks HTTP without TLS")]
    PlainHttp,
    #[error("the handshake was not complete in time")]
    Late,
    #[error(transparent)]
    Broken(#[from] io::Error),
}

/// A loop's handshakes that wait for their turn.
#[derive(Debug)]
pub(super) struct Handshakes {
    turns: RefCell<Turns<oneshot::Sender<()>>>,
    /// Turns are given out by a task, and there is one.
    are_given_out: Cell<bool>,
    turn_time: Cell<Duration>,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self {
            turns: RefCell::default(),
            are_given_out: Cell::new(false),
            turn_time: Cell::new(TURN_TIME),
        }
    }
}

/// A handshake in a loop, and what is counted of it.
struct Handshake<A: App> {
    home: Rc<Loop<A>>,
    stream: TlsStream,
    info: ConnectionInfo,
    held: Held,
    permit: Permit,
}

/// Begins to serve a connection on which a handshake comes first.
pub(super) fn begin_handshake<A: App>(home: &Rc<Loop<A>>, tls: &Tls, mut accepted: Accepted) {
    let Some(permit) = permit_of(home, &mut accepted) else {
        return accepted.refuse(home.settings.rejections.too_many());
    };
    let stream = match TlsStream::new(tls, accepted.socket.into(), accepted.input) {
        Ok(stream) => stream,
        Err(error) => return tracing::error!(%error, "cannot begin a handshake"),
    };
    let mut handshake = Handshake {
        home: Rc::clone(home),
        stream,
        info: accepted.info,
        held: Held::new(Arc::clone(&home.memory)),
        permit,
    };
    // The first message is there mostly; what is not is told by the runtime.
    let _come = handshake
        .stream
        .poll_hello(&mut Context::from_waker(Waker::noop()));
    match handshake.stream.socket_mut().register() {
        Ok(()) => {
            tasks::spawn(complete(handshake));
        }
        Err(error) => tracing::warn!(%error, "cannot register a connection; closing it"),
    }
}

/// Brings the handshake to its end, and begins to serve the connection.
async fn complete<A: App>(mut handshake: Handshake<A>) {
    let home = Rc::clone(&handshake.home);
    let time = home.settings.limits.handshake_timeout;
    let shaken = tokio::select! {
        biased;
        () = home.ended() => return,
        shaken = timeout(time, handshake.shake()) => shaken.unwrap_or(Err(Unshaken::Late)),
    };
    if let Err(error) = shaken {
        tracing::debug!(%error, peer = ?handshake.info.peer, "a handshake failed");
        return handshake.end(&error);
    }
    if let Some(accepted) = handshake.into_accepted() {
        begin(&home, accepted);
    }
}

impl<A: App> Handshake<A> {
    async fn shake(&mut self) -> Result<(), Unshaken> {
        let hello = poll_fn(|cx| {
            let hello = self.stream.poll_hello(cx);
            self.held.note(self.stream.held());
            hello
        });
        let hello = tokio::select! {
            biased;
            hello = hello => hello?,
            // Before its first message nothing is under way, as on an idle connection. Once that is
            // whole, it may be for a slow link that the rest is waited for.
            () = self.home.grace_over() => return Err(Unshaken::Late),
        };
        if hello == Hello::PlainHttp {
            return Err(Unshaken::PlainHttp);
        }
        let owner = self.info.peer.map(|peer| Owner::of(peer.ip()));
        self.home.begin_step(owner).await?;
        loop {
            let is_over = self.stream.shake()?;
            self.held.note(self.stream.held());
            if is_over {
                return Ok(());
            }
            poll_fn(|cx| self.stream.poll_flush(cx)).await?;
            poll_fn(|cx| {
                let record = self.stream.poll_record(cx);
                self.held.note(self.stream.held());
                record
            })
            .await?;
            self.home.go_on_with_step().await;
        }
    }

    /// Tells the client why there is no connection, if it can be told.
    fn end(mut self, error: &Unshaken) {
        match error {
            Unshaken::PlainHttp => {
                let text = "this port speaks HTTPS, and the request came without TLS";
                let rejection = Rejection::new(StatusCode::BAD_REQUEST, text);
                let response = self.home.settings.rejections.response(&rejection);
                let response = Unread::new(&response);
                let response = response.for_input(self.stream.input());
                let response = response.to_vec();
                let _sent = self.stream.socket_mut().try_write(&response);
            }
            Unshaken::Broken(_) => {
                // The alert, if there is one.
                let _sent = self.stream.try_write(&[]);
            }
            Unshaken::Busy => {
                self.home.meter.count_declined("handshakes");
                self.stream.socket().reset_at_end();
            }
            Unshaken::Late => {}
        }
    }

    /// Returns the connection with what was agreed upon; nothing if it was only made to show that
    /// the name is ours (RFC 8737, 3).
    fn into_accepted(mut self) -> Option<Accepted> {
        let info = self.stream.info();
        if info.alpn_protocol() == Some(ACME_PROTOCOL) {
            self.stream.end();
            return None;
        }
        self.info.tls = Some(Arc::new(info));
        Some(Accepted {
            socket: AcceptedSocket::Tls(Box::new(self.stream)),
            info: self.info,
            deferred: false,
            is_proxied: false,
            security: Security::None,
            input: Vec::new(),
            permit: Some(self.permit),
        })
    }
}

impl<A: App> Loop<A> {
    /// Waits for the turn of a handshake's first step.
    async fn begin_step(self: &Rc<Self>, owner: Option<Owner>) -> Result<(), Unshaken> {
        if self.gives_out_turns() {
            return Ok(());
        }
        let (handshakes, limits) = (&self.handshakes, &self.settings.limits);
        let turn = {
            let mut turns = handshakes.turns.borrow_mut();
            let ahead = u32::try_from(turns.ahead(owner)).unwrap_or(u32::MAX);
            let wait = handshakes.turn_time.get().saturating_mul(ahead);
            if wait > limits.handshake_wait_max {
                return Err(Unshaken::Busy);
            }
            let (waker, turn) = oneshot::channel();
            // Whoever has to go learns by the end of its channel.
            let _removed = turns.wait_new(owner, waker, limits.handshakes_max);
            turn
        };
        turn.await.map_err(|_removed| Unshaken::Busy)
    }

    /// Waits for the turn of a further step.
    async fn go_on_with_step(self: &Rc<Self>) {
        if self.gives_out_turns() {
            return;
        }
        let (waker, turn) = oneshot::channel();
        self.handshakes.turns.borrow_mut().wait_begun(waker);
        // It is not removed, but when the loop ends, which ends the handshake, too.
        let _given = turn.await;
    }

    /// Has turns given out from now on; `true` if they were not, and this turn may be taken.
    fn gives_out_turns(self: &Rc<Self>) -> bool {
        if self.handshakes.are_given_out.replace(true) {
            return false;
        }
        tasks::spawn(give_out(Rc::clone(self)));
        true
    }
}

/// Gives a turn to one handshake in each turn of the loop, until none waits.
async fn give_out<A: App>(home: Rc<Loop<A>>) {
    let handshakes = &home.handshakes;
    let mut since = Instant::now();
    loop {
        // Until the system was asked who is ready, and all who were have had their turn.
        yield_now().await;
        let now = Instant::now();
        let took = (now - since).min(TURN_TIME_MAX);
        since = now;
        let before = handshakes.turn_time.get();
        handshakes
            .turn_time
            .set((before * (TURNS_WEIGHED - 1) + took) / TURNS_WEIGHED);
        if !handshakes.give_turn() {
            handshakes.are_given_out.set(false);
            return;
        }
    }
}

impl Handshakes {
    /// Wakes the next; `false` if there is none.
    fn give_turn(&self) -> bool {
        let mut turns = self.turns.borrow_mut();
        // Those that have ended meanwhile need none.
        std::iter::from_fn(|| turns.next()).any(|waker| waker.send(()).is_ok())
    }
}
