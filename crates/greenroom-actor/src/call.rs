use std::fmt;
use std::marker::PhantomData;

use crate::actor::Actor;
use crate::ask::Ask;
use crate::error::{SendError, TellError};
use crate::receive::Receive;
use crate::reference::ActorRef;

/// A message with its receiver, as the methods that `#[messages]` generates return it: to be sent
/// by `tell`, `send` or `ask`.
#[must_use = "nothing is sent before `tell`, `send` or `ask`"]
pub struct Call<'a, A: Actor, M, K> {
    receiver: &'a ActorRef<A>,
    message: M,
    kind: PhantomData<fn(K)>,
}

impl<A: Actor, M, K> fmt::Debug for Call<'_, A, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("receiver", self.receiver)
            .finish_non_exhaustive()
    }
}

impl<'a, A, M, K> Call<'a, A, M, K>
where
    A: Receive<M, K>,
    M: Send + 'static,
    K: 'static,
{
    /// Creates a call of this receiver with this message.
    pub fn new(receiver: &'a ActorRef<A>, message: M) -> Self {
        Self {
            receiver,
            message,
            kind: PhantomData,
        }
    }

    /// Sends the message without waiting, as [`ActorRef::tell`] does.
    ///
    /// # Errors
    ///
    /// As for [`ActorRef::tell`].
    pub fn tell(self) -> Result<(), TellError<M>> {
        self.receiver.tell(self.message)
    }

    /// Sends the message, and waits while the mailbox is full, as [`ActorRef::send`] does.
    ///
    /// # Errors
    ///
    /// As for [`ActorRef::send`].
    pub async fn send(self) -> Result<(), SendError<M>> {
        self.receiver.send(self.message).await
    }

    /// Sends the message and waits for the reply, as [`ActorRef::ask`] does.
    pub fn ask(self) -> Ask<'a, A, M, K> {
        self.receiver.ask(self.message)
    }
}
