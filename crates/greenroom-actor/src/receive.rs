use std::any::Any;
use std::marker::PhantomData;

use crate::actor::{Actor, AsyncHandler, Handler, ReplyHandler};
use crate::cell::Terminated;
use crate::context::Context;
use crate::raw::{Deliver, Job};
use crate::reason::Reason;
use crate::reply::ReplyTo;

/// The three kinds of handlers, as markers that the compiler infers.
pub mod marker {
    /// The marker of [`Handler`](crate::Handler).
    #[derive(Debug)]
    pub enum Sync {}
    /// The marker of [`AsyncHandler`](crate::AsyncHandler).
    #[derive(Debug)]
    pub enum Async {}
    /// The marker of [`ReplyHandler`](crate::ReplyHandler).
    #[derive(Debug)]
    pub enum Reply {}
}

/// An actor that has a [`Handler`], an [`AsyncHandler`] or a [`ReplyHandler`] for `M`; `K` says
/// which, and is inferred. Implement one of them for each message, not more.
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` has no handler for `{M}`",
    label = "no handler for this message",
    note = "implement `Handler<{M}>`, `AsyncHandler<{M}>` or `ReplyHandler<{M}>` for `{Self}`"
)]
pub trait Receive<M, K>: Actor + Sealed<M, K> {}

impl<A: Handler<M>, M: Send + 'static> Receive<M, marker::Sync> for A {}
impl<A: AsyncHandler<M>, M: Send + 'static> Receive<M, marker::Async> for A {}
impl<A: ReplyHandler<M>, M: Send + 'static> Receive<M, marker::Reply> for A {}

mod sealed {
    use super::{Actor, Context, Job, ReplyTo};

    /// The call of a handler of kind `K` with a message.
    pub trait Sealed<M, K>: Actor {
        type Reply: Send + 'static;

        #[allow(private_interfaces, reason = "nobody outside can name this trait")]
        fn receive<'a>(
            &'a mut self,
            message: M,
            reply: ReplyTo<Self::Reply>,
            context: &'a mut Context<Self>,
        ) -> Option<Job<'a>>;

        /// `true` if [`receive_now`](Self::receive_now) returns the reply.
        const REPLIES_NOW: bool = false;

        /// Returns the reply if the handler gives one when it returns; the message otherwise.
        fn receive_now(&mut self, message: M, _: &mut Context<Self>) -> Result<Self::Reply, M> {
            Err(message)
        }
    }
}
pub(crate) use sealed::Sealed;

#[allow(private_interfaces, reason = "nobody outside can name this trait")]
impl<A: Handler<M>, M: Send + 'static> Sealed<M, marker::Sync> for A {
    type Reply = <A as Handler<M>>::Reply;
    const REPLIES_NOW: bool = true;

    fn receive<'a>(
        &'a mut self,
        message: M,
        reply: ReplyTo<<A as Handler<M>>::Reply>,
        context: &'a mut Context<Self>,
    ) -> Option<Job<'a>> {
        #[cfg(feature = "test-kit")]
        crate::testing::inject_fault::<A, M>(context);
        reply.send(self.handle(message, context));
        None
    }

    fn receive_now(
        &mut self,
        message: M,
        context: &mut Context<Self>,
    ) -> Result<<A as Handler<M>>::Reply, M> {
        #[cfg(feature = "test-kit")]
        crate::testing::inject_fault::<A, M>(context);
        Ok(self.handle(message, context))
    }
}

#[allow(private_interfaces, reason = "nobody outside can name this trait")]
impl<A: AsyncHandler<M>, M: Send + 'static> Sealed<M, marker::Async> for A {
    type Reply = <A as AsyncHandler<M>>::Reply;

    fn receive<'a>(
        &'a mut self,
        message: M,
        reply: ReplyTo<<A as AsyncHandler<M>>::Reply>,
        context: &'a mut Context<Self>,
    ) -> Option<Job<'a>> {
        #[cfg(feature = "test-kit")]
        crate::testing::inject_fault::<A, M>(context);
        let handled = self.handle(message, context);
        Some(Job::new(std::any::type_name::<M>(), async move {
            reply.send(handled.await);
            Ok(())
        }))
    }
}

#[allow(private_interfaces, reason = "nobody outside can name this trait")]
impl<A: ReplyHandler<M>, M: Send + 'static> Sealed<M, marker::Reply> for A {
    type Reply = <A as ReplyHandler<M>>::Reply;

    fn receive<'a>(
        &'a mut self,
        message: M,
        reply: ReplyTo<<A as ReplyHandler<M>>::Reply>,
        context: &'a mut Context<Self>,
    ) -> Option<Job<'a>> {
        #[cfg(feature = "test-kit")]
        crate::testing::inject_fault::<A, M>(context);
        self.handle(message, reply, context);
        None
    }
}

/// A message by `tell` or `send`: nobody waits for the reply.
pub(crate) struct TellMessage<M, K>(M, PhantomData<fn(K)>);

impl<M, K> TellMessage<M, K> {
    pub(crate) fn new(message: M) -> Self {
        Self(message, PhantomData)
    }

    pub(crate) fn into_message(self) -> M {
        self.0
    }
}

impl<A, M, K> Deliver<A> for TellMessage<M, K>
where
    A: Receive<M, K>,
    M: Send + 'static,
    K: 'static,
{
    fn deliver<'a>(self, actor: &'a mut A, context: &'a mut Context<A>) -> Option<Job<'a>> {
        actor.receive(self.0, ReplyTo::nobody(), context)
    }

    fn refuse(self, _: Reason) -> Box<dyn Any + Send> {
        Box::new(self.0)
    }

    fn message() -> &'static str {
        std::any::type_name::<M>()
    }
}

/// The notice of an end. Dropped if the actor no longer watches the other when its turn comes.
pub(crate) struct EndNotice<K>(TellMessage<Terminated, K>);

impl<K> EndNotice<K> {
    pub(crate) fn new(terminated: Terminated) -> Self {
        Self(TellMessage::new(terminated))
    }
}

impl<A, K> Deliver<A> for EndNotice<K>
where
    A: Receive<Terminated, K>,
    K: 'static,
{
    fn deliver<'a>(self, actor: &'a mut A, context: &'a mut Context<A>) -> Option<Job<'a>> {
        let Self(notice) = self;
        if context.end_watch(notice.0.id) {
            notice.deliver(actor, context)
        } else {
            None
        }
    }

    fn refuse(self, _: Reason) -> Box<dyn Any + Send> {
        Box::new(self.0.into_message())
    }

    fn message() -> &'static str {
        std::any::type_name::<Terminated>()
    }
}

/// A message by `ask`: its sender waits for the reply.
pub(crate) struct AskMessage<A: Sealed<M, K>, M, K> {
    pub(crate) message: M,
    pub(crate) reply: ReplyTo<A::Reply>,
}

impl<A: Sealed<M, K>, M, K> AskMessage<A, M, K> {
    /// Drops the message of an asker who has the error already.
    pub(crate) fn discard(self) {
        self.reply.forget();
    }
}

impl<A, M, K> Deliver<A> for AskMessage<A, M, K>
where
    A: Receive<M, K>,
    M: Send + 'static,
    K: 'static,
{
    fn deliver<'a>(self, actor: &'a mut A, context: &'a mut Context<A>) -> Option<Job<'a>> {
        actor.receive(self.message, self.reply, context)
    }

    fn refuse(self, reason: Reason) -> Box<dyn Any + Send> {
        self.reply.refuse(reason);
        Box::new(self.message)
    }

    fn message() -> &'static str {
        std::any::type_name::<M>()
    }
}
