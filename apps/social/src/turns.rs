//! Turns of users: what one of them has under way is bounded, and who wants more waits for their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::Failure;
use crate::model::Id;

/// When to try again if too many wait.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Permits for each user. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Turns {
    permits: u32,
    wait_max: Duration,
    places: Arc<Semaphore>,
    users: Arc<Mutex<HashMap<Id, Weak<Semaphore>>>>,
}

impl Turns {
    /// Each user has so many permits. At most `waiting_max` wait at a time, all users together, each for `wait_max`.
    #[must_use]
    pub fn new(permits: u32, waiting_max: usize, wait_max: Duration) -> Self {
        Self {
            permits,
            wait_max,
            places: Arc::new(Semaphore::new(waiting_max.min(Semaphore::MAX_PERMITS))),
            users: Arc::default(),
        }
    }

    /// Takes permits of this user, all that there are if that is less, in the order of the calls; they are given back when the
    /// result is dropped.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if too many wait, or for too long.
    pub async fn take(&self, user: Id, permits: u32) -> Result<OwnedSemaphorePermit, Failure> {
        let permits = permits.min(self.permits);
        let own = self.of(user);
        if let Ok(taken) = Arc::clone(&own).try_acquire_many_owned(permits) {
            return Ok(taken);
        }
        let _place = self.places.try_acquire().map_err(|_| unavailable())?;
        let taken = timeout(self.wait_max, own.acquire_many_owned(permits)).await;
        taken.map_err(|_| unavailable())?.map_err(Failure::internal)
    }

    /// Those whom nobody holds are forgotten, so there are as many as users with something under way.
    fn of(&self, user: Id) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = users.get(&user).and_then(Weak::upgrade) {
            return own;
        }
        let own = Arc::new(Semaphore::new(self.permits as usize));
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

    fn is_refused<T>(result: &Result<T, Failure>) -> bool {
        matches!(result, Err(Failure::Unavailable { .. }))
    }

    #[tokio::test]
    async fn who_has_much_under_way_holds_up_nobody_else() {
        let (ada, grace) = (Id::new(), Id::new());
        let turns = Turns::new(50, 4, WAIT_MAX);
        let first = turns.take(ada, 50).await.expect("the first has no wait");
        let mut second = Box::pin(turns.take(ada, 20));
        let mut third = Box::pin(turns.take(ada, 20));
        assert!((&mut second).now_or_never().is_none());
        assert!((&mut third).now_or_never().is_none());
        let others = turns.take(grace, 30).now_or_never();
        let others = others.expect("nothing of hers is under way");
        drop(first);
        let (second, third) = (second.await, third.await);
        assert!(second.is_ok() && third.is_ok() && others.is_ok());
    }

    #[tokio::test]
    async fn more_than_all_permits_is_all_of_them() {
        let turns = Turns::new(50, 4, WAIT_MAX);
        let ada = Id::new();
        let all = turns.take(ada, 1_000).await.expect("it is the first");
        assert!(turns.take(ada, 1).now_or_never().is_none());
        drop(all);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_wait_and_not_for_ever() {
        let turns = Turns::new(1, 1, WAIT_MAX);
        let ada = Id::new();
        let _first = turns.take(ada, 1).await.expect("it is the first");
        let mut second = Box::pin(turns.take(ada, 1));
        assert!((&mut second).now_or_never().is_none());
        let third = turns.take(ada, 1).now_or_never();
        assert!(is_refused(&third.expect("there is no place to wait")));
        assert!(is_refused(&second.await));
    }

    #[tokio::test]
    async fn users_without_anything_under_way_are_forgotten() {
        let turns = Turns::new(1, 1, WAIT_MAX);
        for _ in 0..100 {
            drop(turns.take(Id::new(), 1).await.expect("it is the first"));
        }
        let users = turns.users.lock().expect("nothing panicked").len();
        assert!(users <= 1, "{users}");
    }
}
