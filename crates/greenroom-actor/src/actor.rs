use crate::BoxError;
use crate::context::Context;
use crate::limits::Limits;
use crate::mailbox::Mailbox;
use crate::reply::ReplyTo;
use crate::supervision::{Failure, Supervision};

/// A state that only its own handlers touch, one message at a time.
///
/// [`Handler`], [`AsyncHandler`] or [`ReplyHandler`] for `M` says what it does with a message of
/// type `M`.
///
/// ```
/// use greenroom_actor::{Actor, ActorSystem, Context, Handler};
///
/// struct Counter(u64);
/// impl Actor for Counter {}
///
/// struct Add(u64);
/// impl Handler<Add> for Counter {
///     type Reply = u64;
///     fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> u64 {
///         self.0 += amount;
///         self.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new()?;
/// let counter = system.spawn(|| Counter(0));
/// counter.tell(Add(1))?;
/// assert_eq!(counter.ask(Add(2)).await?, 3);
/// # Ok(())
/// # }
/// ```
pub trait Actor: Sized + Send + 'static {
    /// The name of this type of actor in logs, errors and the status. Default: the type's name
    /// without its path.
    #[must_use]
    fn type_name() -> &'static str {
        short_name::<Self>()
    }

    /// The mailbox of actors of this type, unless the spawner gives another. Default: 1,024
    /// messages, and senders wait while it is full.
    #[must_use]
    fn mailbox() -> Mailbox {
        Mailbox::default()
    }

    /// The limits on children, timers and watchers of such an actor. See [`Limits`] for the
    /// defaults.
    #[must_use]
    fn limits() -> Limits {
        Limits::default()
    }

    /// The decision about a child of such an actor that fails. See [`Supervision`] for the default.
    #[must_use]
    fn supervision() -> Supervision {
        Supervision::default()
    }

    /// Called before the first message. An error counts as a failure, as a panic does.
    ///
    /// # Errors
    ///
    /// An error that keeps the actor from working; its supervisor decides what follows.
    fn started(
        &mut self,
        context: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send {
        let _ = context;
        std::future::ready(Ok(()))
    }

    /// Called before the first message after a restart, on the new state. Default: calls
    /// [`started`](Self::started).
    ///
    /// # Errors
    ///
    /// As for [`started`](Self::started).
    fn restarted(
        &mut self,
        failure: &Failure,
        context: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send {
        let _ = failure;
        self.started(context)
    }

    /// Called after the last message of an actor that stops, when its children have ended. Not
    /// called when it is killed, nor before a restart.
    fn stopped(&mut self, context: &mut Context<Self>) -> impl Future<Output = ()> + Send {
        let _ = context;
        std::future::ready(())
    }
}

/// A handler that replies when it returns: the fast path. It holds its worker meanwhile, so what
/// computes for long or blocks belongs on a [stage](crate::Dispatcher::stage).
pub trait Handler<M>: Actor {
    /// The reply to an `ask`.
    type Reply: Send + 'static;

    /// Handles one message. A panic counts as a failure of the actor.
    fn handle(&mut self, message: M, context: &mut Context<Self>) -> Self::Reply;
}

/// A handler that waits. It borrows the actor while it waits, and the mailbox waits meanwhile; the
/// worker runs other actors.
pub trait AsyncHandler<M>: Actor {
    /// The reply to an `ask`.
    type Reply: Send + 'static;

    /// Handles one message. A panic counts as a failure of the actor.
    fn handle(
        &mut self,
        message: M,
        context: &mut Context<Self>,
    ) -> impl Future<Output = Self::Reply> + Send;
}

/// A handler whose reply comes later, or from another actor: it may keep `reply`, send it along, or
/// give it to [`ActorRef::forward`](crate::ActorRef::forward).
pub trait ReplyHandler<M>: Actor {
    /// The reply to an `ask`.
    type Reply: Send + 'static;

    /// Handles one message. If `reply` is dropped unused, the asker gets
    /// [`AskError::NoReply`](crate::AskError::NoReply).
    fn handle(&mut self, message: M, reply: ReplyTo<Self::Reply>, context: &mut Context<Self>);
}

/// Returns a type's name without the path in front of it.
pub(crate) fn short_name<T: ?Sized>() -> &'static str {
    let name = std::any::type_name::<T>();
    let outer = name.split('<').next().unwrap_or(name);
    let begin = outer.rfind("::").map_or(0, |colons| colons + 2);
    &name[begin..]
}
