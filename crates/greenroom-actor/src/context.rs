use std::collections::VecDeque;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use greenroom_timing::Span;
use thiserror::Error;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::BoxError;
use crate::actor::Actor;
use crate::cell::{AnyCell, Posted, Signal, Terminated};
use crate::dispatcher;
use crate::id::ActorId;
use crate::limits::LimitReached;
use crate::panics::Panic;
use crate::raw::{Deliver, Envelope};
use crate::receive::{AskMessage, EndNotice, Receive, Sealed, TellMessage};
use crate::reference::ActorRef;
use crate::reply::ReplyTo;
use crate::supervision::Cause;
use crate::system::{ActorSystem, Spawn};
use crate::timer::{Timer, Timers};
use crate::watched::{Tie, Watched};

/// Messages that an actor may set aside.
pub const STASH_MAX: usize = 1_024;
/// Futures that an actor may have [piped](Context::pipe) to itself at a time.
pub const PIPES_MAX: usize = 1_024;

/// An actor's access to itself and its surroundings, for the time of a handler.
pub struct Context<A: Actor> {
    me: Option<ActorRef<A>>,
    extras: Option<Box<Extras<A>>>,
}

/// The state that only some actors need.
struct Extras<A: Actor> {
    stash: VecDeque<Envelope<A>>,
    unstashed: Vec<Envelope<A>>,
    pipes: JoinSet<()>,
    timers: Timers,
    watched: Watched,
}

/// An error: the stash holds [`STASH_MAX`] messages. The message comes back.
#[derive(Error)]
#[error("the stash is full: it holds {STASH_MAX} messages")]
pub struct StashFull<M>(pub M);

impl<M> fmt::Debug for StashFull<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StashFull(..)")
    }
}

/// An error: [`PIPES_MAX`] piped futures are not ready yet.
#[derive(Debug, Error)]
#[error("the actor waits for {PIPES_MAX} piped futures already")]
pub struct PipesFull;

impl<A: Actor> Context<A> {
    pub(crate) const fn new() -> Self {
        Self {
            me: None,
            extras: None,
        }
    }

    /// Returns the actor's reference to itself.
    ///
    /// # Panics
    ///
    /// Never within a handler or a hook.
    #[must_use]
    pub fn myself(&self) -> &ActorRef<A> {
        self.me
            .as_ref()
            .expect("an actor that runs has a reference to itself")
    }

    /// Returns the system that the actor belongs to.
    #[must_use]
    pub fn system(&self) -> ActorSystem {
        ActorSystem::of(&self.myself().0.shared.settings.system)
    }

    /// Spawns a child, which ends with this actor and is supervised by it ([`Actor::supervision`]).
    /// The function makes its state, and makes it again for each restart. Beyond
    /// [`Limits::children`](crate::Limits::children) the child ends before it begins, with an ERROR
    /// in the log; [`build`](Self::build) returns the error.
    pub fn spawn<C: Actor>(&self, make: impl Fn() -> C + Send + 'static) -> ActorRef<C> {
        self.build(make).spawn_or_end()
    }

    /// Like [`spawn`](Self::spawn), with settings.
    pub fn build<C: Actor>(&self, make: impl Fn() -> C + Send + 'static) -> Spawn<C> {
        let me = &self.myself().0;
        Spawn::new(
            &me.shared.settings.system,
            Some(std::sync::Arc::clone(me) as _),
            Box::new(make),
        )
    }

    /// Ends this actor when it has handled what is in its mailbox; see [`ActorRef::stop`].
    pub fn stop(&self) {
        self.myself().stop();
    }

    /// Fails this actor when the message at hand is handled; an asynchronous handler that then
    /// waits is dropped where it waits, and its message is a dead letter.
    pub fn fail(&self, error: impl Into<BoxError>) {
        let cause = Cause::from_error(error.into());
        let me = &self.myself().0;
        me.signal_any(Signal::Fail(Box::new(me.failure("a handler", cause))));
    }

    /// Notifies this actor when another ends: with [`Terminated`], by the control lane. At once, if
    /// it has ended. If the other has as many watchers as its [`Limits`](crate::Limits) allow, this
    /// actor fails.
    pub fn watch<B, K>(&mut self, other: &ActorRef<B>)
    where
        B: Actor,
        A: Receive<Terminated, K>,
        K: 'static,
    {
        let me = self.myself().downgrade();
        let id = self.myself().id();
        if self.extras().watched.add(other, Tie::Watch) {
            let tell = move |terminated| {
                if let Some(me) = me.upgrade() {
                    me.0.notify(EndNotice::<K>::new(terminated));
                }
            };
            if !AnyCell::watch(&*other.0, id, Tie::Watch, Box::new(tell)) {
                self.extras().watched.remove_tie(other.id(), Tie::Watch);
                self.fail_of_watchers(other);
            }
        }
    }

    /// Undoes [`watch`](Self::watch) and [`link`](Self::link). No [`Terminated`] of the other comes
    /// after this, not even one that is in the mailbox by now.
    pub fn unwatch<B: Actor>(&mut self, other: &ActorRef<B>) {
        if let Some(extras) = &mut self.extras {
            extras.watched.remove(other.id());
        }
        let me = self.myself();
        AnyCell::unwatch(&*other.0, me.id(), Tie::Watch);
        unlink(me, other);
    }

    /// Links this actor and another, both ways: when one of them is killed or ends as failed, the
    /// other fails. An actor that is stopped takes nobody with it. Counts as a watcher of both: see
    /// [`watch`](Self::watch).
    pub fn link<B: Actor>(&mut self, other: &ActorRef<B>) {
        self.extras().watched.add(other, Tie::Link);
        let me = self.myself();
        // Made anew, as the other one may have undone it.
        unlink(me, other);
        // Its half first: if it has ended, mine undoes that at once.
        if !link(other, me) {
            self.extras().watched.remove_tie(other.id(), Tie::Link);
            self.fail_of_watchers(self.myself());
        } else if !link(me, other) {
            unlink(me, other);
            self.extras().watched.remove_tie(other.id(), Tie::Link);
            self.fail_of_watchers(other);
        }
    }

    /// Sends this actor a message that is made of a future's result, without waiting for it here.
    /// If the future panics, the actor fails.
    /// The future runs on the runtime of the actor's worker, and is dropped when the actor ends or
    /// is restarted. If the mailbox is full, the message waits for room.
    ///
    /// # Errors
    ///
    /// If [`PIPES_MAX`] are on their way already.
    pub fn pipe<F, M, K>(
        &mut self,
        future: F,
        message: impl FnOnce(F::Output) -> M + Send + 'static,
    ) -> Result<(), PipesFull>
    where
        F: Future + Send + 'static,
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        let me = self.myself().clone();
        let pipes = &mut self.extras().pipes;
        // Frees the tasks of futures that are ready: a `JoinSet` keeps them until they are joined.
        while pipes.try_join_next().is_some() {}
        if pipes.len() >= PIPES_MAX {
            return Err(PipesFull);
        }
        let sending = async move {
            let made = async { message(future.await) };
            match AssertUnwindSafe(made).catch_unwind().await {
                Ok(message) => Piped::<A, M, K>::new(me, message).send().await,
                Err(panic) => me.fail_of_pipe(&Panic::from(panic)),
            }
        };
        match Span::current() {
            Some(span) => pipes.spawn(span.carry(sending)),
            None => pipes.spawn(sending),
        };
        Ok(())
    }

    /// Sends this actor a message after this time. Times are exact to a millisecond.
    ///
    /// Timers end with the actor, and when it is restarted. A message that does not fit into the
    /// mailbox becomes a dead letter. With more timers than [`Limits`](crate::Limits) allow, the
    /// actor fails, and the timer has ended; so it is with [`at`](Self::at) and
    /// [`every`](Self::every).
    pub fn once<M, K>(&mut self, after: Duration, message: M) -> Timer
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        self.at(dispatcher::moment_after(after), message)
    }

    /// Like [`once`](Self::once), at a moment.
    pub fn at<M, K>(&mut self, moment: Instant, message: M) -> Timer
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        let me = self.myself().clone();
        let set = self.extras().timers.at(&me, moment, message);
        set.unwrap_or_else(|ended| self.fail_of_timers(ended))
    }

    /// Sends this actor a message again and again, the first time after one interval of at least a
    /// millisecond. They never pile up: while one waits in the mailbox, no other is sent. One that
    /// panics as it is cloned is left out, with an error in the log.
    pub fn every<M, K>(&mut self, interval: Duration, message: M) -> Timer
    where
        A: Receive<M, K>,
        M: Clone + Send + 'static,
        K: 'static,
    {
        let me = self.myself().clone();
        let set = self.extras().timers.every(&me, interval, message);
        set.unwrap_or_else(|ended| self.fail_of_timers(ended))
    }

    /// Sets a message aside until [`unstash_all`](Self::unstash_all). The stash of an actor that
    /// ends becomes dead letters; a restart unstashes it.
    ///
    /// # Errors
    ///
    /// The message, if there are [`STASH_MAX`] set aside.
    pub fn stash<M, K>(&mut self, message: M) -> Result<(), StashFull<M>>
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        if self.stashed() >= STASH_MAX {
            return Err(StashFull(message));
        }
        self.put_aside(TellMessage::<M, K>::new(message));
        Ok(())
    }

    /// Like [`stash`](Self::stash), with the [`ReplyTo`] of the asker, for a
    /// [`ReplyHandler`](crate::ReplyHandler).
    ///
    /// # Errors
    ///
    /// Message and reply, if there are [`STASH_MAX`] set aside.
    #[expect(clippy::type_complexity, reason = "what comes back is what was given")]
    pub fn stash_asked<M, K>(
        &mut self,
        message: M,
        reply: ReplyTo<<A as Sealed<M, K>>::Reply>,
    ) -> Result<(), StashFull<(M, ReplyTo<<A as Sealed<M, K>>::Reply>)>>
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        if self.stashed() >= STASH_MAX {
            return Err(StashFull((message, reply)));
        }
        self.put_aside(AskMessage::<A, M, K> { message, reply });
        Ok(())
    }

    /// Its wait in the stash is a span of its own, below that of the handler which set it aside.
    fn put_aside(&mut self, content: impl Deliver<A>) {
        let envelope = self.myself().0.envelop(content);
        self.extras().stash.push_back(envelope);
    }

    /// Puts all that was set aside in front of the mailbox, in the order in which it was.
    pub fn unstash_all(&mut self) {
        let Some(extras) = &mut self.extras else {
            return;
        };
        if extras.stash.is_empty() {
            return;
        }
        extras.unstashed.extend(extras.stash.drain(..));
        self.myself().0.look();
    }

    /// Returns the number of messages in the stash.
    #[must_use]
    pub fn stashed(&self) -> usize {
        self.extras.as_ref().map_or(0, |extras| extras.stash.len())
    }

    pub(crate) fn introduce(&mut self, me: ActorRef<A>) {
        self.me = Some(me);
    }

    /// Ends the watch of an actor that has ended. Returns `false` if there is none.
    pub(crate) fn end_watch(&mut self, of: ActorId) -> bool {
        let extras = self.extras.as_mut();
        extras.is_some_and(|extras| extras.watched.remove_tie(of, Tie::Watch))
    }

    pub(crate) fn take_unstashed(&mut self) -> Vec<Envelope<A>> {
        self.extras
            .as_mut()
            .map(|extras| std::mem::take(&mut extras.unstashed))
            .unwrap_or_default()
    }

    pub(crate) fn take_stash(&mut self) -> Vec<Envelope<A>> {
        self.unstash();
        self.take_unstashed()
    }

    /// Ends timers and pipes before a restart. Stashed messages come first after it.
    pub(crate) fn reset(&mut self) {
        self.unstash();
        if let Some(extras) = &mut self.extras {
            extras.timers.cancel_all();
            extras.pipes.abort_all();
            extras.pipes.detach_all();
        }
    }

    /// Releases all that keeps the memory of an actor that has ended.
    pub(crate) fn let_go(&mut self) {
        if let (Some(extras), Some(me)) = (&mut self.extras, &self.me) {
            extras.timers.cancel_all();
            extras.watched.leave_all(me.id());
        }
        self.extras = None;
        self.me = None;
    }

    fn fail_of_timers(&self, ended: Timer) -> Timer {
        let limits = self.myself().0.shared.settings.limits;
        self.fail(LimitReached::Timers(limits.timers));
        ended
    }

    fn fail_of_watchers<B: Actor>(&self, other: &ActorRef<B>) {
        let limits = other.0.shared.settings.limits;
        self.fail(LimitReached::Watchers(limits.watchers));
    }

    fn unstash(&mut self) {
        if let Some(extras) = &mut self.extras {
            extras.unstashed.extend(extras.stash.drain(..));
        }
    }

    fn extras(&mut self) -> &mut Extras<A> {
        self.extras.get_or_insert_with(|| {
            Box::new(Extras {
                stash: VecDeque::new(),
                unstashed: Vec::new(),
                pipes: JoinSet::new(),
                timers: Timers::default(),
                watched: Watched::default(),
            })
        })
    }
}

impl<A: Actor> ActorRef<A> {
    fn fail_of_pipe(&self, panic: &Panic) {
        let failure = self.0.failure("a piped future", Cause::from_panic(panic));
        self.0.signal_any(Signal::Fail(Box::new(failure)));
    }
}

/// A message on its way to the actor that piped it. Dropped while it waits for room, it is a dead
/// letter.
struct Piped<A: Receive<M, K>, M: Send + 'static, K: 'static> {
    to: ActorRef<A>,
    message: Option<TellMessage<M, K>>,
}

impl<A: Receive<M, K>, M: Send + 'static, K: 'static> Piped<A, M, K> {
    fn new(to: ActorRef<A>, message: M) -> Self {
        let message = Some(TellMessage::new(message));
        Self { to, message }
    }

    /// Sends the message, and waits while the mailbox is full. If the actor has ended or refuses,
    /// `drop` makes it a dead letter.
    async fn send(mut self) {
        while self.is_to_wait() {
            let room = self.to.0.listen_for_room();
            if self.is_to_wait() {
                room.await;
            }
        }
    }

    fn is_to_wait(&mut self) -> bool {
        let Some(message) = self.message.take() else {
            return false;
        };
        let (is_full, message) = match self.to.0.post(message) {
            Posted::Done => return false,
            Posted::Full(message) => (true, message),
            Posted::Closed(message) => (false, message),
        };
        self.message = Some(message);
        is_full && self.to.0.lets_wait()
    }
}

impl<A: Receive<M, K>, M: Send + 'static, K: 'static> Drop for Piped<A, M, K> {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            self.to.0.post_or_dead_letter(message);
        }
    }
}

/// Undoes a link, both ways.
fn unlink<A: Actor, B: Actor>(one: &ActorRef<A>, other: &ActorRef<B>) {
    AnyCell::unwatch(&*one.0, other.id(), Tie::Link);
    AnyCell::unwatch(&*other.0, one.id(), Tie::Link);
}

/// Fails `from` when `to` ends otherwise than by being stopped. Returns `false` if `to` may have no
/// more watchers.
fn link<A: Actor, B: Actor>(from: &ActorRef<A>, to: &ActorRef<B>) -> bool {
    let id = from.id();
    let from = from.downgrade();
    let fail = move |terminated: Terminated| {
        let Some(from) = from.upgrade() else { return };
        AnyCell::unwatch(&*from.0, terminated.id, Tie::Link);
        if matches!(terminated.ending, crate::Ending::Stopped) {
            return;
        }
        let failure = from.0.failure("its life", Cause::Linked(terminated.path));
        from.0.signal_any(Signal::Fail(Box::new(failure)));
    };
    AnyCell::watch(&*to.0, id, Tie::Link, Box::new(fail))
}

impl<A: Actor> fmt::Debug for Context<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}
