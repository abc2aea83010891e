use std::fmt;
use std::sync::Arc;

use futures_util::future::select_all;
use parking_lot::{Mutex, RwLock};

use super::strategy::Strategy;
use crate::actor::Actor;
use crate::ask::{Ask, Callee};
use crate::error::{SendError, TellError};
use crate::notifier::Notifier;
use crate::receive::{Receive, Sealed};
use crate::reference::ActorRef;
use crate::reply::ReplyTo;
use crate::system::{Spawn, SpawnError, Template};

/// The largest number of routees of one router.
pub const ROUTEES_MAX: usize = 1_024;

/// A pool of actors that do the same, behind one handle. The sender picks the routee: no actor is
/// in between. Clones are the same pool.
///
/// - The routees are children of the actor that built the router ([`Spawn::router`]), and
///   supervised as such: one that fails is restarted, and gets messages meanwhile, as any actor
///   does.
/// - One that has ended is left out, and not replaced before the next [`resize`](Self::resize).
///   When all have ended, messages come back as for an actor that has ended.
/// - When the picked routee has no room, [`RoundRobin`](crate::RoundRobin) and
///   [`LeastLoaded`](crate::LeastLoaded) take another; with
///   [`ConsistentHash`](crate::ConsistentHash) the sender waits or gets the message back.
/// - Dropping the handle ends nothing; [`stop`](Self::stop) does, or the end of the parent.
///
/// ```
/// use greenroom_actor::{Actor, ActorSystem, Context, Handler, RoundRobin};
///
/// struct Resizer;
/// impl Actor for Resizer {}
///
/// struct Resize(u32);
/// impl Handler<Resize> for Resizer {
///     type Reply = u32;
///     fn handle(&mut self, Resize(pixels): Resize, _: &mut Context<Self>) -> u32 {
///         pixels / 2
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new()?;
/// let resizers = system.build(|| Resizer).name("resizer").router(RoundRobin::new(), 4)?;
/// assert_eq!(resizers.ask(Resize(640)).await?, 320);
/// resizers.resize(8)?;
/// # Ok(())
/// # }
/// ```
pub struct Router<A: Actor, S>(Arc<Pool<A, S>>);

type Routees<A> = Arc<Vec<ActorRef<A>>>;

struct Pool<A: Actor, S> {
    strategy: S,
    /// Never empty; may hold some that have ended. A routee's place says which keys it has.
    /// Senders take a clone: no strategy is called, and no message dropped, under the lock.
    routees: RwLock<Routees<A>>,
    /// Locked during a change of size.
    template: Mutex<Template<A>>,
    /// Notified after a change of size: who waits for room may find some with a new routee.
    resized: Notifier,
}

impl<A: Actor> Spawn<A> {
    /// Spawns this many actors, from 1 to [`ROUTEES_MAX`] (other numbers mean the nearest allowed),
    /// as the routees of a router. If a name was given, a number follows it: `resizer-1`,
    /// `resizer-2` and so on. The function that makes their states is called by one at a time.
    ///
    /// # Errors
    ///
    /// If there is no dispatcher of that name, it could not be started here, or the parent may have
    /// no more children.
    pub fn router<S>(self, strategy: S, routees: usize) -> Result<Router<A, S>, SpawnError> {
        let pool = Pool {
            strategy,
            routees: RwLock::default(),
            template: Mutex::new(Template::new(self)),
            resized: Notifier::new(),
        };
        let router = Router(Arc::new(pool));
        let spawned = router.resize(routees);
        if spawned.is_err() {
            router.stop();
        }
        spawned.map(|()| router)
    }
}

impl<A: Actor, S> Router<A, S> {
    /// Sends a message to one routee, without waiting. See [`ActorRef::tell`].
    ///
    /// # Errors
    ///
    /// The message, if no routee that may take it has room, or all have ended.
    pub fn tell<M, K>(&self, mut message: M) -> Result<(), TellError<M>>
    where
        A: Receive<M, K>,
        S: Strategy<M>,
        M: Send + 'static,
        K: 'static,
    {
        let routees = self.routees();
        let is_any_free = || {
            let is_free = |routee: &ActorRef<A>| routee.is_alive() && routee.has_room();
            S::TRIES_OTHERS && routees.iter().any(is_free)
        };
        let mut attempts = routees.len();
        loop {
            attempts -= 1;
            let routee = self.0.strategy.pick(&message, &routees);
            message = match routee.tell(message) {
                Ok(()) => return Ok(()),
                Err(error) if attempts == 0 || (error.is_full() && !is_any_free()) => {
                    return Err(error);
                }
                Err(error) => error.into_message(),
            }
        }
    }

    /// Sends a message to one routee, and waits for room if none that may take it has any: with
    /// [`RoundRobin`](crate::RoundRobin) and [`LeastLoaded`](crate::LeastLoaded) for that of
    /// whichever has some first. See [`ActorRef::send`].
    ///
    /// # Errors
    ///
    /// The message, if all routees have ended, or if a full mailbox refuses.
    pub async fn send<M, K>(&self, mut message: M) -> Result<(), SendError<M>>
    where
        A: Receive<M, K>,
        S: Strategy<M>,
        M: Send + 'static,
        K: 'static,
    {
        loop {
            let Some(left) = self.offer::<M, K>(message)? else {
                return Ok(());
            };
            // Listened to before the second try, or room made in between would go unnoticed.
            let waited_for = self.candidates(&left);
            let room = waited_for.iter().map(|routee| routee.0.listen_for_room());
            let wakers: Vec<_> = room.chain([self.0.resized.listen()]).collect();
            let Some(left) = self.offer::<M, K>(left)? else {
                return Ok(());
            };
            let ((), woken_by, _) = select_all(wakers).await;
            // The room of that one first: if it were left, nobody would wake the next that waits
            // for it.
            message = match waited_for.get(woken_by) {
                Some(routee) => match routee.tell::<M, K>(left) {
                    Ok(()) => return Ok(()),
                    Err(error) => error.into_message(),
                },
                None => left,
            };
        }
    }

    /// Sends a message to one routee and waits for the reply. The routee is picked here; if it has
    /// no room by then, the question waits for that one. See [`ActorRef::ask`].
    pub fn ask<M, K>(&self, message: M) -> Ask<'static, A, M, K>
    where
        A: Receive<M, K>,
        S: Strategy<M>,
        M: Send + 'static,
        K: 'static,
    {
        Ask::new(Callee::Picked(self.pick(&message)), message)
    }

    /// Sends a message on to one routee, with the reply for the first asker. See
    /// [`ActorRef::forward`].
    pub fn forward<M, K>(&self, message: M, reply: ReplyTo<<A as Sealed<M, K>>::Reply>)
    where
        A: Receive<M, K>,
        S: Strategy<M>,
        M: Send + 'static,
        K: 'static,
    {
        self.pick(&message).forward(message, reply);
    }

    /// Sends a message to every routee, and returns the number of those that live. For one whose
    /// mailbox is full the message is a dead letter.
    pub fn broadcast<M, K>(&self, message: M) -> usize
    where
        A: Receive<M, K>,
        M: Clone + Send + 'static,
        K: 'static,
    {
        let routees = self.routees();
        let Some((last, others)) = routees.split_last() else {
            return 0;
        };
        let tell = |routee: &&ActorRef<A>| routee.publish::<M, K>(message.clone());
        let reached = others.iter().filter(tell).count();
        reached + usize::from(last.publish::<M, K>(message))
    }

    /// Changes the number of routees, from 1 to [`ROUTEES_MAX`] (other numbers mean the nearest
    /// allowed). Those that have ended are replaced. Of too many the youngest are stopped: they
    /// handle what is in their mailboxes, perhaps after others have begun with newer messages of
    /// the same key.
    ///
    /// # Errors
    ///
    /// If the dispatcher could not be started here, or the parent may have no more children.
    /// Routees that were spawned before stay.
    pub fn resize(&self, routees: usize) -> Result<(), SpawnError> {
        let size = routees.clamp(1, ROUTEES_MAX);
        let mut template = self.0.template.lock();
        let mut routees = Vec::clone(&self.routees());
        let surplus = routees.split_off(size.min(routees.len()));
        let filled = fill(&mut routees, size, &mut template);
        if !routees.is_empty() {
            let before = std::mem::replace(&mut *self.0.routees.write(), Arc::new(routees));
            // Outside of the lock: with the last reference to an actor goes what it was made with.
            drop(before);
        }
        self.0.resized.notify(usize::MAX);
        surplus.iter().for_each(ActorRef::stop);
        filled
    }

    /// Returns the number of routees that live.
    #[must_use]
    pub fn size(&self) -> usize {
        let routees = self.routees();
        routees.iter().filter(|routee| routee.is_alive()).count()
    }

    /// Stops all routees: they end when they have handled what is in their mailboxes. Returns at
    /// once.
    pub fn stop(&self) {
        self.routees().iter().for_each(ActorRef::stop);
    }

    /// Waits until all routees have ended.
    pub async fn terminated(&self) {
        let routees = self.routees();
        for routee in routees.iter() {
            routee.terminated().await;
        }
    }

    /// Tries to send a message. It comes back if it has to wait for room.
    fn offer<M, K>(&self, message: M) -> Result<Option<M>, SendError<M>>
    where
        A: Receive<M, K>,
        S: Strategy<M>,
        M: Send + 'static,
        K: 'static,
    {
        match self.tell::<M, K>(message) {
            Ok(()) => Ok(None),
            // All have the mailbox of the template.
            Err(TellError::Full(message)) if self.routees()[0].0.lets_wait() => Ok(Some(message)),
            Err(TellError::Full(message)) => Err(SendError::Full(message)),
            Err(TellError::Closed(message)) => Err(SendError::Closed(message)),
        }
    }

    /// Returns the routees that may take a message.
    fn candidates<M>(&self, message: &M) -> Routees<A>
    where
        S: Strategy<M>,
    {
        if S::TRIES_OTHERS {
            self.routees()
        } else {
            Arc::new(vec![self.pick(message)])
        }
    }

    fn pick<M>(&self, message: &M) -> ActorRef<A>
    where
        S: Strategy<M>,
    {
        self.0.strategy.pick(message, &self.routees()).clone()
    }

    fn routees(&self) -> Routees<A> {
        Arc::clone(&self.0.routees.read())
    }
}

/// Replaces routees that have ended: a new one takes the place, and so the keys, of an old one.
fn fill<A: Actor>(
    routees: &mut Vec<ActorRef<A>>,
    size: usize,
    template: &mut Template<A>,
) -> Result<(), SpawnError> {
    for place in 0..size {
        match routees.get_mut(place) {
            Some(routee) if routee.is_alive() => {}
            Some(ended) => *ended = template.spawn()?,
            None => routees.push(template.spawn()?),
        }
    }
    Ok(())
}

impl<A: Actor, S> Clone for Router<A, S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: Actor, S> fmt::Debug for Router<A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Router").field(&*self.routees()).finish()
    }
}
