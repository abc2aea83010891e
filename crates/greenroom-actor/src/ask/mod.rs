//! Requests to actors that wait for a reply.

mod error;

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

pub use error::AskError;

use crate::actor::Actor;
use crate::cell::{AnyCell, Posted};
use crate::dispatcher::{self, Core, Deadline};
use crate::notifier::Listener;
use crate::path::ActorPath;
use crate::reason::Reason;
use crate::receive::{AskMessage, Receive, Sealed};
use crate::reference::ActorRef;
use crate::reply::{ReplyReceiver, ReplyTo};

/// The default deadline of an `ask`.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// A request to an actor on its way: a future of the reply.
///
/// Dropped before it is ready, it waits no longer; the message may be handled all the same.
#[must_use = "nothing is asked before the future is polled"]
pub struct Ask<'a, A: Receive<M, K>, M, K> {
    callee: Callee<'a, A>,
    timeout: Duration,
    state: State<A, M, K>,
    deadline: Option<Deadline>,
    kind: PhantomData<fn(K)>,
}

/// The actor that is asked: the caller's reference, or one that a router picked.
pub(crate) enum Callee<'a, A: Actor> {
    Borrowed(&'a ActorRef<A>),
    Picked(ActorRef<A>),
}

impl<A: Actor> std::ops::Deref for Callee<'_, A> {
    type Target = ActorRef<A>;

    fn deref(&self) -> &ActorRef<A> {
        match self {
            Self::Borrowed(callee) => callee,
            Self::Picked(callee) => callee,
        }
    }
}

enum State<A: Sealed<M, K>, M, K> {
    /// The message is there, and is taken from its place: a state is long to move.
    Fresh(Option<M>),
    /// The mailbox is full.
    NoRoom(AskMessage<A, M, K>, ReplyReceiver<A::Reply>, Listener),
    Sent(ReplyReceiver<A::Reply>),
    Done,
}

impl<'a, A, M, K> Ask<'a, A, M, K>
where
    A: Receive<M, K>,
    M: Send + 'static,
    K: 'static,
{
    pub(crate) fn new(callee: Callee<'a, A>, message: M) -> Self {
        Self {
            callee,
            timeout: TIMEOUT_DEFAULT,
            state: State::Fresh(Some(message)),
            deadline: None,
            kind: PhantomData,
        }
    }

    /// Waits at most this long, counted from the first poll. Default: 5 s. Exact to a millisecond.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends the message. Returns the result if it is there at once.
    fn begin(&mut self, message: M) -> Option<Result<A::Reply, AskError>> {
        let message = match dispatcher::call_here(&self.callee.0, message) {
            Ok(called) => return Some(called.map_err(|_| self.unhandled(Reason::Failed))),
            Err(message) => message,
        };
        let (reply, receiver) = ReplyTo::new();
        self.post(AskMessage { message, reply }, receiver)
    }

    /// Puts the message into the mailbox, or waits for room in it.
    fn post(
        &mut self,
        message: AskMessage<A, M, K>,
        receiver: ReplyReceiver<A::Reply>,
    ) -> Option<Result<A::Reply, AskError>> {
        let cell = &self.callee.0;
        let message = match cell.post(message) {
            Posted::Done => {
                self.state = State::Sent(receiver);
                return None;
            }
            Posted::Closed(message) => return Some(Err(self.closed(message))),
            Posted::Full(message) if !cell.lets_wait() => return Some(Err(self.full(message))),
            Posted::Full(message) => message,
        };
        let room = cell.listen_for_room();
        self.state = match cell.post(message) {
            Posted::Done => State::Sent(receiver),
            Posted::Closed(message) => return Some(Err(self.closed(message))),
            Posted::Full(message) => State::NoRoom(message, receiver, room),
        };
        None
    }

    /// Waits for room in the mailbox. Returns the result if there is one.
    #[inline(never)]
    fn wait_for_room(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<A::Reply, AskError>>> {
        let State::NoRoom(_, _, room) = &mut self.state else {
            return Poll::Ready(None);
        };
        let has_room = Pin::new(room).poll(cx).is_ready();
        if !has_room && self.watch_deadline(cx.waker()) {
            return Poll::Pending;
        }
        let State::NoRoom(message, receiver, _) = mem::replace(&mut self.state, State::Done) else {
            return Poll::Ready(None);
        };
        Poll::Ready(if has_room {
            self.post(message, receiver)
        } else {
            message.discard();
            Some(Err(self.timed_out()))
        })
    }

    /// Polls the reply to a message that was sent: in place, as nothing of the state changes.
    // Not inlined, so that an `ask` whose reply is there at once does not pay for it.
    #[inline(never)]
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<A::Reply, AskError>> {
        let State::Sent(receiver) = &mut self.state else {
            return Poll::Pending;
        };
        let result = match Pin::new(receiver).poll(cx) {
            Poll::Ready(reply) => self.replied(reply),
            Poll::Pending if self.watch_deadline(cx.waker()) => return Poll::Pending,
            Poll::Pending => Err(self.timed_out()),
        };
        self.state = State::Done;
        Poll::Ready(result)
    }

    /// Wakes the task at the deadline. Returns `false` if that is past.
    fn watch_deadline(&mut self, waker: &Waker) -> bool {
        let Some(deadline) = &self.deadline else {
            self.deadline = Some(Deadline::begin(&self.callee.0, self.timeout, waker));
            return true;
        };
        deadline.keep_waiting(core(&self.callee), waker)
    }

    fn replied(
        &self,
        reply: Result<Result<A::Reply, Reason>, oneshot::RecvError>,
    ) -> Result<A::Reply, AskError> {
        match reply {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(Reason::Ended)) => Err(AskError::Closed {
                callee: self.callee_path(),
            }),
            Ok(Err(reason)) => Err(self.unhandled(reason)),
            Err(_) => Err(AskError::NoReply {
                callee: self.callee_path(),
                message: message_type::<M>(),
            }),
        }
    }

    fn timed_out(&self) -> AskError {
        let home = self.callee.0.shared.home.load(Ordering::Relaxed);
        let other = core(&self.callee).waits_for(self.callee.id(), home);
        AskError::TimedOut {
            asker: dispatcher::keep_running_actor().map(ActorPath::new),
            callee: self.callee_path(),
            callee_waits_for: other.map(ActorPath::new),
            message: message_type::<M>(),
            after: self.timeout,
        }
    }

    fn unhandled(&self, reason: Reason) -> AskError {
        AskError::Unhandled {
            callee: self.callee_path(),
            message: message_type::<M>(),
            reason,
        }
    }

    fn closed(&self, message: AskMessage<A, M, K>) -> AskError {
        message.discard();
        AskError::Closed {
            callee: self.callee_path(),
        }
    }

    fn full(&self, message: AskMessage<A, M, K>) -> AskError {
        message.discard();
        AskError::Full {
            callee: self.callee_path(),
        }
    }

    fn callee_path(&self) -> ActorPath {
        let callee: Arc<dyn AnyCell> = Arc::clone(&self.callee.0) as _;
        ActorPath::new(callee)
    }
}

impl<A: Actor> ActorRef<A> {
    /// Sends a message and waits for the reply, for at most 5 s if [`timeout`](Ask::timeout) does
    /// not say otherwise. Nothing is sent before the first poll.
    ///
    /// An actor that asks from an [`AsyncHandler`](crate::AsyncHandler) gets the reply without any
    /// queue if the other is idle, on the same dispatcher, and replies at once
    /// ([`Handler`](crate::Handler)). While it waits its own mailbox waits: two actors that ask
    /// each other wait until the deadline, whose error names both.
    pub fn ask<M, K>(&self, message: M) -> Ask<'_, A, M, K>
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        Ask::new(Callee::Borrowed(self), message)
    }
}

impl<A, M, K> Future for Ask<'_, A, M, K>
where
    A: Receive<M, K>,
    M: Send + 'static,
    K: 'static,
{
    type Output = Result<A::Reply, AskError>;

    /// # Panics
    ///
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ask = self.get_mut();
        loop {
            let result = match &mut ask.state {
                State::Sent(_) => return ask.wait(cx),
                State::Fresh(message) => {
                    let message = message.take().expect("polled after it was ready");
                    ask.begin(message)
                }
                State::NoRoom(..) => ready!(ask.wait_for_room(cx)),
                State::Done => panic!("polled after it was ready"),
            };
            if let Some(result) = result {
                ask.state = State::Done;
                return Poll::Ready(result);
            }
        }
    }
}

impl<A: Receive<M, K>, M, K> Unpin for Ask<'_, A, M, K> {}

impl<A: Receive<M, K>, M, K> Drop for Ask<'_, A, M, K> {
    fn drop(&mut self) {
        if let Some(deadline) = self.deadline.take() {
            deadline.end(core(&self.callee));
        }
    }
}

impl<A: Receive<M, K>, M, K> fmt::Debug for Ask<'_, A, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("callee", &*self.callee)
            .field("message", &message_type::<M>())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

fn core<A: Actor>(callee: &ActorRef<A>) -> &Core {
    &callee.0.shared.settings.dispatcher
}

fn message_type<M>() -> &'static str {
    std::any::type_name::<M>()
}
