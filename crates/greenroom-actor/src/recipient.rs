use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::{SendError, TellError};
use crate::id::ActorId;
use crate::receive::Receive;
use crate::reference::ActorRef;

/// A reference to an actor that takes messages of type `M`, whatever its own type.
pub struct Recipient<M>(Arc<dyn Accept<M>>);

impl<M> Clone for Recipient<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Recipient<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recipient").field(&self.0.path()).finish()
    }
}

impl<M: Send + 'static> Recipient<M> {
    pub(crate) fn new<A, K>(actor: ActorRef<A>) -> Self
    where
        A: Receive<M, K>,
        K: 'static,
    {
        Self(Arc::new(Known {
            actor,
            kind: std::marker::PhantomData::<fn(K)>,
        }))
    }

    /// Sends a message without waiting, as [`ActorRef::tell`] does.
    ///
    /// # Errors
    ///
    /// As for [`ActorRef::tell`].
    pub fn tell(&self, message: M) -> Result<(), TellError<M>> {
        self.0.tell(message)
    }

    /// Sends a message, and waits while the mailbox is full, as [`ActorRef::send`] does.
    ///
    /// # Errors
    ///
    /// As for [`ActorRef::send`].
    pub async fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.0.send(message).await
    }

    /// Returns `true` as long as the actor takes messages.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    /// Returns the actor's number.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.0.id()
    }

    /// Sends a message, and makes a dead letter of it if it does not fit. Returns `false` if the
    /// actor has ended.
    pub(crate) fn publish(&self, message: M) -> bool {
        self.0.publish(message)
    }
}

trait Accept<M>: Send + Sync {
    fn tell(&self, message: M) -> Result<(), TellError<M>>;
    fn send(&self, message: M) -> BoxFuture<'_, Result<(), SendError<M>>>;
    fn publish(&self, message: M) -> bool;
    fn is_alive(&self) -> bool;
    fn id(&self) -> ActorId;
    fn path(&self) -> String;
}

struct Known<A: crate::Actor, K> {
    actor: ActorRef<A>,
    kind: std::marker::PhantomData<fn(K)>,
}

impl<A, M, K> Accept<M> for Known<A, K>
where
    A: Receive<M, K>,
    M: Send + 'static,
    K: 'static,
{
    fn tell(&self, message: M) -> Result<(), TellError<M>> {
        self.actor.tell(message)
    }

    fn send(&self, message: M) -> BoxFuture<'_, Result<(), SendError<M>>> {
        Box::pin(self.actor.send(message))
    }

    fn publish(&self, message: M) -> bool {
        self.actor.publish::<M, K>(message)
    }

    fn is_alive(&self) -> bool {
        self.actor.is_alive()
    }

    fn id(&self) -> ActorId {
        self.actor.id()
    }

    fn path(&self) -> String {
        self.actor.path()
    }
}
