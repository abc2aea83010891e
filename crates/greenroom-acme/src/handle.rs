//! Changes of the names while certificates are looked after.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::fmt::{self, Debug, Formatter};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::{AbortHandle, Abortable, abortable};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::builder::{self, BuildError};
use crate::certificate::Certificate;
use crate::group::{Group, Shared};
use crate::status::GroupStatus;

/// A group that is looked after until it is not asked for any more.
pub(crate) type Kept = Abortable<Pin<Box<dyn Future<Output = Infallible> + Send>>>;

/// Changes the names of an [`Acme`](crate::Acme) while it runs. Clones change the same.
#[derive(Clone)]
pub struct AcmeHandle {
    pub(crate) shared: Arc<Shared>,
    /// The groups that are looked after, by their names.
    kept: Arc<Mutex<HashMap<Vec<String>, AbortHandle>>>,
    /// To [`Acme::run`](crate::Acme::run).
    begun: mpsc::UnboundedSender<Kept>,
}

impl AcmeHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> (Self, mpsc::UnboundedReceiver<Kept>) {
        let (begun, receiver) = mpsc::unbounded_channel();
        let handle = Self {
            shared,
            kept: Arc::default(),
            begun,
        };
        (handle, receiver)
    }

    /// Sets the names of all certificates, each as by
    /// [`AcmeBuilder::certificate`](crate::AcmeBuilder::certificate), in place of those that were
    /// set before. It waits for the disk, but not for the authority.
    ///
    /// A certificate with the same names goes on as it was. One that is new is served at once if it
    /// is on disk, and else ordered. For names that are not asked for any more no certificate is
    /// served from now on, and orders for them end; on disk they stay.
    ///
    /// # Errors
    ///
    /// If a name is wrong or stands there twice, or there are too many. All stays as it was then.
    pub fn set_certificates<G, N>(
        &self,
        groups: impl IntoIterator<Item = G>,
    ) -> Result<(), BuildError>
    where
        G: IntoIterator<Item = N>,
        N: Into<String>,
    {
        let groups = groups.into_iter();
        let groups: Vec<Vec<String>> = groups
            .map(|names| names.into_iter().map(Into::into).collect())
            .collect();
        self.keep(&builder::names(&groups)?);
        Ok(())
    }

    /// Looks after these groups, whose names were checked, and after no others.
    pub(crate) fn keep(&self, groups: &[Vec<String>]) {
        let mut kept = self.kept.lock();
        let wanted: HashSet<&Vec<String>> = groups.iter().collect();
        kept.retain(|names, ending| {
            let is_wanted = wanted.contains(names);
            if !is_wanted {
                ending.abort();
            }
            is_wanted
        });
        let names = groups.iter().flatten().map(String::as_str).collect();
        self.shared.certificates.retain(&names);
        let is_new = |names: &&Vec<String>| !kept.contains_key(*names);
        let new: Vec<_> = groups.iter().filter(is_new).cloned().collect();
        let new = new.into_iter().map(|names| {
            let certificate = self.read(&names);
            (names, certificate)
        });
        let new: Vec<_> = new.collect();
        self.report(groups, &new);
        for (names, certificate) in new {
            let group = Group::new(&self.shared, names.clone(), certificate);
            let run: Pin<Box<dyn Future<Output = Infallible> + Send>> = Box::pin(group.run());
            let (run, ending) = abortable(run);
            kept.insert(names, ending);
            // Without a receiver nobody looks after certificates any more.
            let _ended = self.begun.send(run);
        }
    }

    /// Puts the groups into the status, in their order.
    fn report(&self, groups: &[Vec<String>], new: &[(Vec<String>, Option<Certificate>)]) {
        self.shared.status.send_modify(|all| {
            let before = mem::take(&mut all.groups).into_iter();
            let mut status: HashMap<Vec<String>, GroupStatus> =
                before.map(|group| (group.names.clone(), group)).collect();
            status.extend(new.iter().map(|(names, certificate)| {
                let group = GroupStatus::new(names.clone(), certificate.as_ref());
                (names.clone(), group)
            }));
            all.groups = groups
                .iter()
                .filter_map(|names| status.remove(names))
                .collect();
        });
    }

    /// Reads and serves the certificates of a group; returns the one that serves it best.
    fn read(&self, names: &[String]) -> Option<Certificate> {
        let mut found = self.shared.on_disk(names);
        for certificate in &found {
            self.shared.certificates.install(names, certificate);
        }
        found.pop()
    }
}

impl Debug for AcmeHandle {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AcmeHandle")
            .field("status", &*self.shared.status.borrow())
            .finish_non_exhaustive()
    }
}
