//! The places of each user among the notifications that are under way.

use parking_lot::Mutex;

use crate::model::Id;
use crate::outbox::worker::{AT_ONCE, Setback};

/// Notifications of a user that are under way at a time, of one kind on one replica: others go on
/// while an address of that user hangs.
const OF_A_USER_MAX: usize = AT_ONCE / 4;

/// The users whose notifications are under way, each as often as there are.
#[derive(Default)]
pub(super) struct Places(Mutex<Vec<Id>>);

/// A place, which is free again when this is dropped.
pub(super) struct Place<'a> {
    places: &'a Places,
    user: Id,
}

impl Places {
    /// Takes a place. Whoever finds none waits elsewhere, as if it had failed: here it would hold
    /// up others.
    pub(super) fn take(&self, user: Id) -> Result<Place<'_>, Setback> {
        let mut users = self.0.lock();
        if users.iter().filter(|other| **other == user).count() >= OF_A_USER_MAX {
            return Err(Setback::temporary(
                "too many notifications of this user are under way",
            ));
        }
        users.push(user);
        Ok(Place { places: self, user })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut users = self.places.0.lock();
        if let Some(place) = users.iter().position(|user| *user == self.user) {
            users.swap_remove(place);
        }
    }
}
