//! All certificates together.

use std::convert::Infallible;
use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};

use crate::builder::AcmeBuilder;
use crate::certificates::Certificates;
use crate::challenges::Challenges;
use crate::handle::{AcmeHandle, Kept};
use crate::http01::Http01;
use crate::status::Status;
use crate::store::claim;

/// Certificates that are obtained and renewed while [`run`](Self::run) is polled.
///
/// The certificates on disk are served from the beginning. While this exists, or its `run`, or a
/// handle, no other process can use the directory.
pub struct Acme {
    pub(crate) handle: AcmeHandle,
    /// The groups that are to be looked after, from the handle.
    pub(crate) begun: mpsc::UnboundedReceiver<Kept>,
    pub(crate) challenges: Arc<Challenges>,
}

impl Acme {
    /// Returns a builder, with the directory in which the account's key and the certificates are
    /// kept. It is made if need be, for this user alone.
    #[must_use]
    pub fn builder(storage: impl AsRef<Path>) -> AcmeBuilder {
        AcmeBuilder::new(storage.as_ref())
    }

    /// Returns the resolver of certificates for a `rustls::ServerConfig`. It works on after `run`
    /// was dropped, with the certificates that there are.
    #[must_use]
    pub fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.handle.shared.certificates)
    }

    /// Returns the responses to HTTP-01 challenges.
    #[must_use]
    pub fn http01(&self) -> Http01 {
        Http01::new(Arc::clone(&self.challenges))
    }

    /// Returns the state of all certificates, and tells of each change.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Status> {
        self.handle.shared.status.subscribe()
    }

    /// Returns a handle, by which the names can be changed while `run` is polled.
    #[must_use]
    pub fn handle(&self) -> AcmeHandle {
        self.handle.clone()
    }

    /// Returns the lock of the directory. A process that is to take this one's place gets this very
    /// file, as a descriptor over a Unix socket or by inheritance, and gives it to
    /// [`AcmeBuilder::lock`].
    #[must_use]
    pub fn lock(&self) -> &File {
        self.handle.shared.store.lock_file()
    }

    /// Orders what is missing, renews what is due, and tries again what has failed, until the
    /// future is dropped.
    ///
    /// It must be polled within a tokio runtime with I/O and time enabled. All certificates are
    /// looked after in this one future; only files are written on threads for blocking work.
    ///
    /// If the directory is another process', as [`AcmeBuilder::lock`] and
    /// [`AcmeBuilder::wait_for_lock`] allow, it becomes this one's first, and what that one has
    /// obtained meanwhile is read again.
    pub async fn run(mut self) -> Infallible {
        let store = Arc::clone(&self.handle.shared.store);
        if claim(&store).await {
            self.handle.shared.is_stale.store(true, Ordering::Relaxed);
        }
        let mut kept = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(group) = self.begun.recv() => kept.push(group),
                Some(_ended) = kept.next() => {}
            }
        }
    }
}

impl Debug for Acme {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Acme")
            .field("status", &*self.handle.shared.status.borrow())
            .finish_non_exhaustive()
    }
}
