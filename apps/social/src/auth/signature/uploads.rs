use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use parking_lot::Mutex;

use crate::Failure;
use crate::model::Id;

/// The time after which to retry without a permit.
const RETRY: Duration = Duration::from_secs(2);

/// The permits of signed uploads, each of which is in memory as a whole; cheap to clone.
///
/// In the extensions of a request it marks the request as an upload.
#[derive(Clone, Debug)]
pub struct SignedUploads {
    permits_max: usize,
    bytes_max: ByteSize,
    holders: Arc<Mutex<HashSet<Id>>>,
}

impl SignedUploads {
    /// Creates `permits_max` permits, for bodies of at most `bytes_max`.
    #[must_use]
    pub fn new(permits_max: usize, bytes_max: ByteSize) -> Self {
        Self {
            permits_max,
            bytes_max,
            holders: Arc::default(),
        }
    }

    /// Returns the largest size of a body.
    pub(super) fn bytes_max(&self) -> ByteSize {
        self.bytes_max
    }

    /// Takes a permit, released when it is dropped.
    ///
    /// A user has at most one, with all their keys together: else one user could hold them all.
    ///
    /// # Errors
    /// [`Failure::TooMany`] if the user holds one, [`Failure::Unavailable`] if none is free.
    pub(super) fn take(&self, user: Id) -> Result<Permit, Failure> {
        let mut holders = self.holders.lock();
        if holders.contains(&user) {
            return Err(Failure::TooMany { retry_after: RETRY });
        }
        if holders.len() >= self.permits_max {
            return Err(Failure::Unavailable {
                what: "a place for one more signed upload",
                retry_after: RETRY,
                source: None,
            });
        }
        holders.insert(user);
        Ok(Permit {
            uploads: self.clone(),
            user,
        })
    }
}

/// A permit for one upload.
#[derive(Debug)]
pub(super) struct Permit {
    uploads: SignedUploads,
    user: Id,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.uploads.holders.lock().remove(&self.user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_permit_for_each_user() {
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
