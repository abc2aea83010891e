use std::fmt;
use std::sync::{Arc, Weak};

use crate::actor::Actor;
use crate::cell::{AnyCell, Posted, Signal};
use crate::error::{SendError, TellError};
use crate::id::ActorId;
use crate::raw::ActorCell;
use crate::reason::Reason;
use crate::receive::{AskMessage, Receive, Sealed, TellMessage};
use crate::recipient::Recipient;
use crate::reply::ReplyTo;

/// A reference to an actor, by which others send it messages. Clones are cheap and mean the same
/// actor, across restarts too. An actor lives until it is stopped, whether it is referred to or
/// not.
///
/// Messages that one sender sends to one actor are handled in the order in which they were sent.
/// Control (stop, restart, notices of ends) overtakes them.
pub struct ActorRef<A: Actor>(pub(crate) Arc<ActorCell<A>>);

impl<A: Actor> Clone for ActorRef<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: Actor> PartialEq for ActorRef<A> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<A: Actor> Eq for ActorRef<A> {}

impl<A: Actor> fmt::Debug for ActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ActorRef").field(&self.path()).finish()
    }
}

impl<A: Actor> ActorRef<A> {
    /// Puts a message into the mailbox, without waiting and without asking for a reply.
    ///
    /// # Errors
    ///
    /// The message, if the mailbox is full or the actor has ended. A message that a full mailbox
    /// [drops](crate::Overflow) is a dead letter instead.
    pub fn tell<M, K>(&self, message: M) -> Result<(), TellError<M>>
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        match self.0.post(TellMessage::<M, K>::new(message)) {
            Posted::Done => Ok(()),
            Posted::Full(message) => Err(TellError::Full(message.into_message())),
            Posted::Closed(message) => Err(TellError::Closed(message.into_message())),
        }
    }

    /// Puts a message into the mailbox, and waits for room if it is full: back-pressure. It waits
    /// without a deadline, so actors that send to each other may wait for ever. Dropped before it
    /// is ready, it has sent nothing.
    ///
    /// # Errors
    ///
    /// The message, if the actor has ended, or if a full mailbox
    /// [refuses](crate::Overflow::Refuse).
    pub async fn send<M, K>(&self, message: M) -> Result<(), SendError<M>>
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        let mut message = TellMessage::<M, K>::new(message);
        loop {
            message = match self.0.post(message) {
                Posted::Done => return Ok(()),
                Posted::Closed(message) => return Err(SendError::Closed(message.into_message())),
                Posted::Full(message) if !self.0.lets_wait() => {
                    return Err(SendError::Full(message.into_message()));
                }
                Posted::Full(message) => message,
            };
            // Listened to before the second try, or room made in between would go unnoticed.
            let room = self.0.listen_for_room();
            message = match self.0.post(message) {
                Posted::Done => return Ok(()),
                Posted::Closed(message) => return Err(SendError::Closed(message.into_message())),
                Posted::Full(message) => message,
            };
            room.await;
        }
    }

    /// Sends a message on, with the reply for the first asker. If it cannot be delivered it is a
    /// dead letter, and the asker gets an error.
    pub fn forward<M, K>(&self, message: M, reply: ReplyTo<<A as Sealed<M, K>>::Reply>)
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        self.0
            .post_or_dead_letter(AskMessage::<A, M, K> { message, reply });
    }

    /// Sends a message, and makes a dead letter of it if it does not fit. Returns `false` if the
    /// actor has ended.
    pub(crate) fn publish<M, K>(&self, message: M) -> bool
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        match self.0.post(TellMessage::<M, K>::new(message)) {
            Posted::Done => true,
            Posted::Full(message) => {
                self.0
                    .dead_letter(self.0.envelop(message), Reason::MailboxFull.into());
                true
            }
            Posted::Closed(_) => false,
        }
    }

    /// Returns a reference that hides the actor's type.
    #[must_use]
    pub fn recipient<M, K>(&self) -> Recipient<M>
    where
        A: Receive<M, K>,
        M: Send + 'static,
        K: 'static,
    {
        Recipient::new(self.clone())
    }

    /// Stops the actor: it handles what is in its mailbox, and its children what is in theirs, then
    /// they end. It takes no more messages from now on. Returns at once.
    pub fn stop(&self) {
        // Made first: an actor that finds its lane closed closes what it has of a family, too.
        let _ = self.0.shared.family();
        self.0.lane().close();
        self.0.signal_any(Signal::Stop);
    }

    /// Kills the actor and its children: messages in their mailboxes become dead letters. A handler
    /// that runs is not interrupted, one that waits is dropped. Returns at once.
    pub fn kill(&self) {
        self.0.signal_any(Signal::Kill);
    }

    /// Waits until the actor has ended.
    pub async fn terminated(&self) {
        loop {
            let end = self.0.shared.family().end.listen();
            // Orders listening before the look: `mark_ended` stores first, and then notifies.
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            if AnyCell::is_ended(&*self.0) {
                return;
            }
            end.await;
        }
    }

    /// Returns `true` as long as the actor takes messages.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.0.lane().is_closed()
    }

    /// Returns the number of messages in the mailbox, at about this moment.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        AnyCell::waiting(&*self.0)
    }

    /// Returns `true` if a message would fit into the mailbox, at about this moment.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting() < self.0.shared.settings.mailbox.capacity()
    }

    /// Returns the number of messages that wait, the one at hand included, at about this moment.
    pub(crate) fn load(&self) -> u32 {
        self.waiting() + u32::from(!self.0.lane().is_idle())
    }

    /// Returns the actor's number.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.0.shared.id
    }

    /// Returns the actor's place in the tree, such as `/feeder-3/subscriber-17`.
    #[must_use]
    pub fn path(&self) -> String {
        AnyCell::path(&*self.0)
    }

    /// A reference that does not keep the memory of an ended actor.
    #[must_use]
    pub fn downgrade(&self) -> WeakActorRef<A> {
        WeakActorRef(Arc::downgrade(&self.0))
    }
}

/// A reference that does not keep the memory of an ended actor.
pub struct WeakActorRef<A: Actor>(Weak<ActorCell<A>>);

impl<A: Actor> WeakActorRef<A> {
    /// Returns a reference, if the actor lives or somebody else refers to it.
    #[must_use]
    pub fn upgrade(&self) -> Option<ActorRef<A>> {
        self.0.upgrade().map(ActorRef)
    }
}

impl<A: Actor> Clone for WeakActorRef<A> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}

impl<A: Actor> fmt::Debug for WeakActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakActorRef")
            .field(&self.upgrade())
            .finish()
    }
}
