use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytesize::ByteSize;

use crate::Failure;
use crate::model::Id;

/// When to try again what found no place.
const RETRY: Duration = Duration::from_secs(2);

/// The places of signed uploads, of which each is in memory as a whole; cheap to clone. In the extensions of a request it says
/// that the request is an upload.
#[derive(Clone, Debug)]
pub struct SignedUploads {
    places_max: usize,
    bytes_max: ByteSize,
    holders: Arc<Mutex<HashSet<Id>>>,
}

impl SignedUploads {
    /// So many places, for bodies of at most so many bytes.
    #[must_use]
    pub fn new(places_max: usize, bytes_max: ByteSize) -> Self {
        Self {
            places_max,
            bytes_max,
            holders: Arc::default(),
        }
    }

    /// The longest body.
    pub(super) fn bytes_max(&self) -> ByteSize {
        self.bytes_max
    }

    /// A place until it is dropped. A user has at most one, whatever keys they sign with: else one user could hold them all.
    ///
    /// # Errors
    /// [`Failure::TooMany`] if the user has one, [`Failure::Unavailable`] if none is free.
    pub(super) fn take(&self, user: Id) -> Result<Place, Failure> {
        let mut holders = self.holders();
        if holders.contains(&user) {
            return Err(Failure::TooMany { retry_after: RETRY });
        }
        if holders.len() >= self.places_max {
            return Err(Failure::Unavailable {
                what: "a place for one more signed upload",
                retry_after: RETRY,
                source: None,
            });
        }
        holders.insert(user);
        Ok(Place {
            uploads: self.clone(),
            user,
        })
    }

    fn holders(&self) -> MutexGuard<'_, HashSet<Id>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken.
#[derive(Debug)]
pub(super) struct Place {
    uploads: SignedUploads,
    user: Id,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.uploads.holders().remove(&self.user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_for_each_user() {
        let uploads = SignedUploads::new(2, ByteSize::mib(1));
        let (ada, grace, linus) = (Id::new(), Id::new(), Id::new());
        let first = uploads.take(ada).expect("all are free");
        let again = uploads.take(ada);
        assert!(matches!(again, Err(Failure::TooMany { .. })), "{again:?}");
        let _second = uploads.take(grace).expect("one is free");
        let third = uploads.take(linus);
        assert!(
            matches!(third, Err(Failure::Unavailable { .. })),
            "{third:?}"
        );
        drop(first);
        uploads.take(linus).expect("one is free again");
    }
}
