//! Per-user turns: each user does a thing one at a time, and waits only for themself.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard, Semaphore};
use tokio::time::timeout;

use crate::Failure;
use crate::model::Id;

/// The time after which to retry if too many wait.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A mutex for each user. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Turns {
    wait_max: Duration,
    waiting: Arc<Semaphore>,
    users: Arc<Mutex<HashMap<Id, Weak<Turn<()>>>>>,
}

impl Turns {
    /// Creates turns in which at most `waiting_max` calls wait at a time, of all users together,
    /// each for at most `wait_max`.
    #[must_use]
    pub fn new(waiting_max: usize, wait_max: Duration) -> Self {
        Self {
            wait_max,
            waiting: Arc::new(Semaphore::new(waiting_max.min(Semaphore::MAX_PERMITS))),
            users: Arc::default(),
        }
    }

    /// Takes the turn of this user, in the order of the calls. It ends when the guard is dropped.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if too many wait, or this one waited too long.
    pub async fn take(&self, user: Id) -> Result<OwnedMutexGuard<()>, Failure> {
        let own = self.of(user);
        if let Ok(taken) = Arc::clone(&own).try_lock_owned() {
            return Ok(taken);
        }
        let _permit = self.waiting.try_acquire().map_err(|_| unavailable())?;
        let taken = timeout(self.wait_max, own.lock_owned()).await;
        taken.map_err(|_| unavailable())
    }

    /// Returns the user's mutex. Those that nobody holds are forgotten, so there are as many as
    /// users with something under way.
    fn of(&self, user: Id) -> Arc<Turn<()>> {
        let mut users = self.users.lock();
        users.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = users.get(&user).and_then(Weak::upgrade) {
            return own;
        }
        let own = Arc::default();
        users.insert(user, Arc::downgrade(&own));
        own
    }
}

fn unavailable() -> Failure {
    Failure::Unavailable {
        what: "a place in the queue of pictures",
        retry_after: RETRY_AFTER,
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const WAIT_MAX: Duration = Duration::from_secs(10);

    fn is_rejected<T>(result: &Result<T, Failure>) -> bool {
        matches!(result, Err(Failure::Unavailable { .. }))
    }

    #[tokio::test]
    async fn users_wait_for_their_own_turn_only() {
        let (ada, grace) = (Id::new(), Id::new());
        let turns = Turns::new(4, WAIT_MAX);
        let first = turns.take(ada).await.expect("the first has no wait");
        let mut second = Box::pin(turns.take(ada));
        assert!((&mut second).now_or_never().is_none());
        let other = turns.take(grace).now_or_never();
        assert!(other.expect("nothing of hers is under way").is_ok());
        drop(first);
        assert!(second.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_wait_and_not_for_ever() {
        let turns = Turns::new(1, WAIT_MAX);
        let ada = Id::new();
        let _first = turns.take(ada).await.expect("it is the first");
        let mut second = Box::pin(turns.take(ada));
        assert!((&mut second).now_or_never().is_none());
        let third = turns.take(ada).now_or_never();
        assert!(is_rejected(&third.expect("there is no place to wait")));
        assert!(is_rejected(&second.await));
    }

    #[tokio::test]
    async fn users_without_anything_under_way_are_forgotten() {
        let turns = Turns::new(1, WAIT_MAX);
        for _ in 0..100 {
            drop(turns.take(Id::new()).await.expect("it is the first"));
        }
        let users = turns.users.lock().len();
        assert!(users <= 1, "{users}");
    }
}
