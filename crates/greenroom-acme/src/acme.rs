//! All certificates together.

use std::convert::Infallible;
use std::fmt::{self, Debug, Formatter};
use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::watch;

use crate::builder::AcmeBuilder;
use crate::certificates::Certificates;
use crate::challenges::Challenges;
use crate::group::{Group, Shared};
use crate::http01::Http01;
use crate::status::Status;

/// Certificates that are obtained and renewed while [`run`](Self::run) is polled.
///
/// The certificates on disk are served from the beginning. While this exists, or its `run`, no
/// other process can use the directory.
pub struct Acme {
    pub(crate) shared: Arc<Shared>,
    pub(crate) groups: Vec<Group>,
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
        Arc::clone(&self.shared.certificates)
    }

    /// Returns the responses to HTTP-01 challenges.
    #[must_use]
    pub fn http01(&self) -> Http01 {
        Http01::new(Arc::clone(&self.challenges))
    }

    /// Returns the state of all certificates, and tells of each change.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Status> {
        self.shared.status.subscribe()
    }

    /// Orders what is missing, renews what is due, and tries again what has failed, until the
    /// future is dropped.
    ///
    /// It must be polled within a tokio runtime with I/O and time enabled. All certificates are
    /// looked after in this one future; only files are written on threads for blocking work.
    pub async fn run(self) -> Infallible {
        join_all(self.groups.into_iter().map(Group::run)).await;
        unreachable!("a group is looked after without end")
    }
}

impl Debug for Acme {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Acme")
            .field("status", &*self.shared.status.borrow())
            .finish_non_exhaustive()
    }
}
