//! The bytes that the bodies of an application's requests take in all, in memory and in files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter of the bytes of bodies that are received or wait for their response.
#[derive(Debug)]
pub(crate) struct Uploads {
    held: AtomicU64,
    held_max: u64,
}

/// The bytes of one body, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    uploads: Arc<Uploads>,
    bytes: u64,
}

/// The limit leaves no space for more of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too much is being uploaded")]
pub(crate) struct Full;

impl Uploads {
    pub(crate) fn new(held_max: u64) -> Arc<Self> {
        Arc::new(Self {
            held: AtomicU64::new(0),
            held_max,
        })
    }

    pub(crate) fn begin(self: &Arc<Self>) -> Held {
        Held {
            uploads: Arc::clone(self),
            bytes: 0,
        }
    }
}

impl Held {
    /// Adds bytes as they come: a length that a client only announces takes no space from others.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        let bytes = bytes as u64;
        let held = self.uploads.held.fetch_add(bytes, Ordering::Relaxed);
        // Counted even if it is too much: dropping this takes it off again.
        self.bytes += bytes;
        if held.saturating_add(bytes) > self.uploads.held_max {
            return Err(Full);
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.uploads.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_makes_room() {
        let uploads = Uploads::new(10);
        let (mut one, mut other) = (uploads.begin(), uploads.begin());
        assert_eq!(one.grow(6), Ok(()));
        assert_eq!(other.grow(5), Err(Full));
        drop(other);
        assert_eq!(one.grow(4), Ok(()));
        assert_eq!(one.grow(1), Err(Full));
        drop(one);
        assert_eq!(uploads.begin().grow(10), Ok(()));
    }
}
