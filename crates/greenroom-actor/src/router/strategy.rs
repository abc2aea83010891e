use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::hash;
use crate::actor::Actor;
use crate::reference::ActorRef;

/// The choice of a [`Router`](crate::Router) among its routees, for a message of type `M`:
/// [`RoundRobin`], [`LeastLoaded`] or [`ConsistentHash`].
pub trait Strategy<M>: Pick<M> {}

mod sealed {
    use super::{Actor, ActorRef};

    /// The methods of strategies, which users cannot call.
    pub trait Pick<M>: Send + Sync + 'static {
        /// `true` if another routee may take a message for which the picked one has no room.
        const TRIES_OTHERS: bool;

        /// Picks a routee of a list that is not empty: one that lives, if there is any.
        fn pick<'a, A: Actor>(&self, message: &M, routees: &'a [ActorRef<A>]) -> &'a ActorRef<A>;
    }
}
pub(super) use sealed::Pick;

/// Each routee in turn. One whose mailbox is full is passed over, as long as another has room.
#[derive(Debug, Default)]
pub struct RoundRobin {
    next: AtomicUsize,
}

/// The routee with the fewest messages that wait, the one that it handles included. Among equals
/// each in turn.
#[derive(Debug, Default)]
pub struct LeastLoaded {
    next: AtomicUsize,
}

/// Messages with the same key go to the same routee, in order; a resize moves as few keys as
/// possible (rendezvous hashing), and a routee that replaces another gets its keys. A key belongs
/// to its routee even if that one's mailbox is full: no other takes the message.
///
/// ```
/// use greenroom_actor::ConsistentHash;
///
/// struct Like { picture: u64 }
/// let by_picture = ConsistentHash::by(|like: &Like| like.picture);
/// ```
pub struct ConsistentHash<M> {
    key: Arc<dyn Fn(&M) -> u64 + Send + Sync>,
}

impl RoundRobin {
    /// Creates the strategy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl LeastLoaded {
    /// Creates the strategy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<M> ConsistentHash<M> {
    /// Creates the strategy of a key, such as a field of the message. The function must give the
    /// same key for the same message, and not use the router.
    pub fn by<Key: Hash>(key: impl Fn(&M) -> Key + Send + Sync + 'static) -> Self {
        Self {
            key: Arc::new(move |message| hash::of_key(key(message))),
        }
    }
}

impl<M> fmt::Debug for ConsistentHash<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsistentHash").finish_non_exhaustive()
    }
}

impl<M> Strategy<M> for RoundRobin {}
impl<M> Strategy<M> for LeastLoaded {}
impl<M: 'static> Strategy<M> for ConsistentHash<M> {}

impl<M> Pick<M> for RoundRobin {
    const TRIES_OTHERS: bool = true;

    fn pick<'a, A: Actor>(&self, _: &M, routees: &'a [ActorRef<A>]) -> &'a ActorRef<A> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = || from(routees, first).filter(|routee| routee.is_alive());
        in_turn()
            .find(|routee| routee.has_room())
            .or_else(|| in_turn().next())
            .unwrap_or(&routees[0])
    }
}

impl<M> Pick<M> for LeastLoaded {
    const TRIES_OTHERS: bool = true;

    fn pick<'a, A: Actor>(&self, _: &M, routees: &'a [ActorRef<A>]) -> &'a ActorRef<A> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        from(routees, first)
            .filter(|routee| routee.is_alive())
            .min_by_key(|routee| routee.load())
            .unwrap_or(&routees[0])
    }
}

impl<M: 'static> Pick<M> for ConsistentHash<M> {
    const TRIES_OTHERS: bool = false;

    fn pick<'a, A: Actor>(&self, message: &M, routees: &'a [ActorRef<A>]) -> &'a ActorRef<A> {
        let key = (self.key)(message);
        routees
            .iter()
            .enumerate()
            .filter(|(_, routee)| routee.is_alive())
            .max_by_key(|(place, _)| hash::score(key, *place as u64))
            .map_or(&routees[0], |(_, routee)| routee)
    }
}

/// Iterates over all items once, from the item `first` on.
fn from<T>(all: &[T], first: usize) -> impl Iterator<Item = &T> {
    let (before, after) = all.split_at(first % all.len());
    after.iter().chain(before)
}
