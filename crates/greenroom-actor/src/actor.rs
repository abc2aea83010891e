use crate::BoxError;
use crate::context::Context;
use crate::limits::Limits;
use crate::mailbox::Mailbox;
use crate::reply::ReplyTo;
use crate::supervision::{Failure, Supervision};

/// A state that only its own handlers touch, one message at a time.
///
/// What it does with a message of type `M` is said by [`Handler`], [`AsyncHandler`] or
/// [`ReplyHandler`] for `M`.
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
    /// What actors of this type are called in logs, errors and the status. The type's name without
    /// its path, if not said otherwise.
    #[must_use]
    fn type_name() -> &'static str {
        short_name::<Self>()
    }

    /// The mailbox of actors of this type, if whoever spawns one does not say otherwise: 1,024
    /// messages, and senders wait when it is full.
    #[must_use]
    fn mailbox() -> Mailbox {
        Mailbox::default()
    }

    /// How many children, timers and watchers such an actor may have. See [`Limits`] for the
    /// defaults.
    #[must_use]
    fn limits() -> Limits {
        Limits::default()
    }

    /// What happens when a child of such an actor fails. See [`Supervision`] for the default.
    #[must_use]
    fn supervision() -> Supervision {
        Supervision::default()
    }

    /// Called before the first message. An error counts as a failure, as a panic does.
    ///
    /// # Errors
    ///
    /// Whatever keeps the actor from working; its supervisor decides what follows.
    fn started(
        &mut self,
        context: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), BoxError>> + Send {
        let _ = context;
        std::future::ready(Ok(()))
    }

    /// Called before the first message after a restart, on the new state. Does what
    /// [`started`](Self::started) does, if not said otherwise.
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

/// What an actor does with a message, at once: the fast path. It holds its worker meanwhile, so
/// what computes for long or blocks belongs on a [stage](crate::Dispatcher::stage).
pub trait Handler<M>: Actor {
    /// The answer to who asks.
    type Reply: Send + 'static;

    /// Handles one message. A panic counts as a failure of the actor.
    fn handle(&mut self, message: M, context: &mut Context<Self>) -> Self::Reply;
}

/// What an actor does with a message that makes it wait. It borrows the actor while it waits, and
/// the mailbox waits meanwhile; the worker runs other actors.
pub trait AsyncHandler<M>: Actor {
    /// The answer to who asks.
    type Reply: Send + 'static;

    /// Handles one message. A panic counts as a failure of the actor.
    fn handle(
        &mut self,
        message: M,
        context: &mut Context<Self>,
    ) -> impl Future<Output = Self::Reply> + Send;
}

/// What an actor does with a message that it answers later, or that another actor answers: it may
/// keep `reply`, send it along, or give it to [`ActorRef::forward`](crate::ActorRef::forward).
pub trait ReplyHandler<M>: Actor {
    /// The answer to who asks.
    type Reply: Send + 'static;

    /// Handles one message. If `reply` is dropped unused, who asks is told so.
    fn handle(&mut self, message: M, reply: ReplyTo<Self::Reply>, context: &mut Context<Self>);
}

/// A type's name without the path in front of it.
pub(crate) fn short_name<T: ?Sized>() -> &'static str {
    let name = std::any::type_name::<T>();
    let outer = name.split('<').next().unwrap_or(name);
    let begin = outer.rfind("::").map_or(0, |colons| colons + 2);
    &name[begin..]
}
