//! The event stream of a system: publish and subscribe by the type of the event.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::id::ActorId;
use crate::recipient::Recipient;

/// The event stream of a system: any type is an event, and every actor that subscribed to it gets a
/// copy. Within the process only; nothing is kept for those that subscribe later.
///
/// A subscriber never slows a publisher: what does not fit into its mailbox is a dead letter
/// ([`Reason::MailboxFull`](crate::Reason), or what its own [`Overflow`](crate::Overflow) says).
/// Events of one publisher come to each subscriber in the order in which they were published.
/// Subscribers that have ended are forgotten.
///
/// ```
/// use greenroom_actor::{Actor, ActorSystem, BoxError, Context, Handler};
///
/// #[derive(Clone)]
/// struct Liked {
///     picture: u64,
/// }
///
/// struct Notifier;
/// impl Actor for Notifier {
///     async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
///         let me = context.myself().recipient();
///         context.system().events().subscribe::<Liked>(me);
///         Ok(())
///     }
/// }
/// impl Handler<Liked> for Notifier {
///     type Reply = ();
///     fn handle(&mut self, liked: Liked, _: &mut Context<Self>) {
///         println!("somebody likes {}", liked.picture);
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new()?;
/// system.spawn(|| Notifier);
/// system.events().publish(Liked { picture: 7 });
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct EventStream {
    /// `Subscribers<E>` by the type `E` of the event.
    subscribers: RwLock<HashMap<TypeId, Box<dyn Any + Send + Sync>>>,
}

/// The subscribers to one type of event. Publishers go through the list as it was when they began.
type Subscribers<E> = Arc<Vec<Recipient<E>>>;

impl EventStream {
    /// Sends every event of this type from now on to an actor, as long as that lives. Returns
    /// `false` if it was subscribed already, which stays as it was: no actor gets an event twice.
    pub fn subscribe<E>(&self, recipient: Recipient<E>) -> bool
    where
        E: Clone + Send + Sync + 'static,
    {
        let refused = self.change(|subscribers| {
            if subscribers.iter().any(|known| known.id() == recipient.id()) {
                return Err(recipient);
            }
            let ended = make_room(subscribers);
            subscribers.push(recipient);
            Ok(ended)
        });
        refused.is_ok()
    }

    /// Sends no more events of this type to the actor with this number. Returns `false` if it was
    /// not subscribed. Events that are in its mailbox already stay there.
    pub fn unsubscribe<E>(&self, actor: ActorId) -> bool
    where
        E: Clone + Send + Sync + 'static,
    {
        let removed =
            self.change::<E, _>(|subscribers| remove(subscribers, |known| known.id() == actor));
        !removed.is_empty()
    }

    /// Sends an event to all actors that subscribed to its type, and returns their number, those
    /// with a full mailbox included. Never waits.
    pub fn publish<E>(&self, event: E) -> usize
    where
        E: Clone + Send + Sync + 'static,
    {
        let Some(subscribers) = self.subscribers_to::<E>() else {
            return 0;
        };
        let Some((last, others)) = subscribers.split_last() else {
            return 0;
        };
        let mut reached = 0;
        for subscriber in others {
            reached += usize::from(subscriber.publish(event.clone()));
        }
        reached += usize::from(last.publish(event));
        if reached < subscribers.len() {
            drop(subscribers);
            drop(self.change::<E, _>(|subscribers| remove(subscribers, |known| !known.is_alive())));
        }
        reached
    }

    /// Removes all subscribers.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.subscribers.write());
        // Outside of the lock: with the last reference to an actor goes what it was made with.
        drop(all);
    }

    fn subscribers_to<E: 'static>(&self) -> Option<Subscribers<E>> {
        let all = self.subscribers.read();
        let subscribers = all.get(&TypeId::of::<E>())?;
        subscribers.downcast_ref::<Subscribers<E>>().map(Arc::clone)
    }

    fn change<E: Send + Sync + 'static, R>(
        &self,
        change: impl FnOnce(&mut Vec<Recipient<E>>) -> R,
    ) -> R {
        let mut all = self.subscribers.write();
        let subscribers = all
            .entry(TypeId::of::<E>())
            .or_insert_with(|| Box::new(Subscribers::<E>::default()))
            .downcast_mut::<Subscribers<E>>()
            .expect("under an event's type are the recipients of that type");
        change(Arc::make_mut(subscribers))
    }
}

/// Removes subscribers that have ended before the list grows: at most half of it is dead, and each
/// is looked at a constant number of times.
fn make_room<E: Send + 'static>(subscribers: &mut Vec<Recipient<E>>) -> Vec<Recipient<E>> {
    if subscribers.len() < subscribers.capacity() {
        return Vec::new();
    }
    let ended = remove(subscribers, |known| !known.is_alive());
    subscribers.reserve(subscribers.len().max(4));
    ended
}

/// Removes the subscribers that the predicate names, and returns them to be dropped outside of the
/// lock: with the last reference to an actor goes what it was made with.
fn remove<E>(
    subscribers: &mut Vec<Recipient<E>>,
    is_to_go: impl Fn(&Recipient<E>) -> bool,
) -> Vec<Recipient<E>> {
    subscribers
        .extract_if(.., |known| is_to_go(known))
        .collect()
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}
