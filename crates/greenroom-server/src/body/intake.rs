use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use atomic_waker::AtomicWaker;

/// Bytes that the application takes of the bodies of a connection that hyper serves, on any thread.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    open: AtomicUsize,
    /// Bytes.
    taken: AtomicU64,
    connection: AtomicWaker,
}

/// A body that is not at its end, until it is dropped.
#[derive(Debug)]
pub(crate) struct Open(Arc<Intake>);

impl Intake {
    /// A body begins.
    pub(crate) fn open(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    pub(crate) fn is_open(&self) -> bool {
        // Together with the release of the last body: what that took is known.
        self.open.load(Ordering::Acquire) > 0
    }

    /// Bytes that the application has taken of all bodies.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Has `connection` woken when a body ends.
    pub(crate) fn tell(&self, connection: &Waker) {
        self.connection.register(connection);
    }
}

impl Open {
    pub(crate) fn take(&self, bytes: usize) {
        self.0.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Release);
        self.0.connection.wake();
    }
}
