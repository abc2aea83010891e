use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::actor::Actor;
use crate::cell::{AnyCell, Posted};
use crate::dead_letter::Reason;
use crate::dispatcher::{self, Core, Deadline};
use crate::error::AskError;
use crate::notifier::Listener;
use crate::path::ActorPath;
use crate::receive::{Asked, Receive, Sealed};
use crate::reference::ActorRef;
use crate::reply::{Answer, ReplyTo};

/// The deadline of an `ask`, if nothing else is said.
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
    Fresh(M),
    /// The mailbox is full.
    NoRoom(Asked<A, M, K>, Answer<A::Answer>, Listener),
    Sent(Answer<A::Answer>),
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
            state: State::Fresh(message),
            deadline: None,
            kind: PhantomData,
        }
    }

    /// Waits at most this long, counted from the first poll. Default: 5 s. Exact to a millisecond.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn begin(&mut self, message: M) -> Result<State<A, M, K>, Result<A::Answer, AskError>> {
        let message = match dispatcher::call_here(&self.callee.0, message) {
            Ok(called) => return Err(called.map_err(|_| self.unhandled(Reason::Failed))),
            Err(message) => message,
        };
        let (reply, answer) = ReplyTo::new();
        self.post(Asked { message, reply }, answer)
    }

    fn post(
        &self,
        asked: Asked<A, M, K>,
        answer: Answer<A::Answer>,
    ) -> Result<State<A, M, K>, Result<A::Answer, AskError>> {
        let cell = &self.callee.0;
        let asked = match cell.post(asked) {
            Posted::Done => return Ok(State::Sent(answer)),
            Posted::Closed(asked) => return Err(Err(self.closed(asked))),
            Posted::Full(asked) if !cell.lets_wait() => return Err(Err(self.full(asked))),
            Posted::Full(asked) => asked,
        };
        let room = cell.listen_for_room();
        match cell.post(asked) {
            Posted::Done => Ok(State::Sent(answer)),
            Posted::Closed(asked) => Err(Err(self.closed(asked))),
            Posted::Full(asked) => Ok(State::NoRoom(asked, answer, room)),
        }
    }

    /// Polls the reply to a message that was sent: in place, as nothing of the state changes.
    // Not inlined, so that an `ask` whose reply is there at once does not pay for it.
    #[inline(never)]
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<A::Answer, AskError>> {
        let State::Sent(answer) = &mut self.state else {
            return Poll::Pending;
        };
        let result = match Pin::new(answer).poll(cx) {
            Poll::Ready(answer) => self.answered(answer),
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

    fn answered(
        &self,
        answer: Result<Result<A::Answer, Reason>, oneshot::RecvError>,
    ) -> Result<A::Answer, AskError> {
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Reason::Ended)) => Err(AskError::Closed {
                callee: self.callee_path(),
            }),
            Ok(Err(reason)) => Err(self.unhandled(reason)),
            Err(_) => Err(AskError::NoReply {
                callee: self.callee_path(),
                message: message::<M>(),
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
            message: message::<M>(),
            after: self.timeout,
        }
    }

    fn unhandled(&self, reason: Reason) -> AskError {
        AskError::Unhandled {
            callee: self.callee_path(),
            message: message::<M>(),
            reason,
        }
    }

    fn closed(&self, asked: Asked<A, M, K>) -> AskError {
        asked.discard();
        AskError::Closed {
            callee: self.callee_path(),
        }
    }

    fn full(&self, asked: Asked<A, M, K>) -> AskError {
        asked.discard();
        AskError::Full {
            callee: self.callee_path(),
        }
    }

    fn callee_path(&self) -> ActorPath {
        let callee: Arc<dyn AnyCell> = Arc::clone(&self.callee.0) as _;
        ActorPath::new(callee)
    }
}

impl<A, M, K> Future for Ask<'_, A, M, K>
where
    A: Receive<M, K>,
    M: Send + 'static,
    K: 'static,
{
    type Output = Result<A::Answer, AskError>;

    /// # Panics
    ///
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ask = self.get_mut();
        loop {
            if let State::Sent(_) = ask.state {
                return ask.wait(cx);
            }
            let next = match std::mem::replace(&mut ask.state, State::Done) {
                State::Fresh(message) => ask.begin(message),
                State::NoRoom(asked, answer, mut room) => match Pin::new(&mut room).poll(cx) {
                    Poll::Ready(()) => ask.post(asked, answer),
                    Poll::Pending if ask.watch_deadline(cx.waker()) => {
                        ask.state = State::NoRoom(asked, answer, room);
                        return Poll::Pending;
                    }
                    Poll::Pending => {
                        asked.discard();
                        Err(Err(ask.timed_out()))
                    }
                },
                State::Sent(_) | State::Done => panic!("polled after it was ready"),
            };
            match next {
                Ok(state) => ask.state = state,
                Err(result) => return Poll::Ready(result),
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
            .field("message", &message::<M>())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

fn core<A: Actor>(callee: &ActorRef<A>) -> &Core {
    &callee.0.shared.settings.dispatcher
}

fn message<M>() -> &'static str {
    std::any::type_name::<M>()
}
