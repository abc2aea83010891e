//! A node's own record, kept in the bucket of nodes as long as it lives, and the watch of the
//! others'.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::kv::{Entry, Operation, Store, Watch};
use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{NodeId, Record, Table};
use crate::core::Core;
use crate::nats::{ConnectError, Stores};

/// A node writes its record this many times within the lease.
const RENEWALS_IN_LEASE: u32 = 3;
/// A node that has not heard of itself for so many leases connects anew. The servers elect a leader
/// within less, with the default lease.
const DEAF_LEASES: u32 = 3;
/// Changes of the record are written at most this often.
const CHANGES_EVERY: Duration = Duration::from_millis(20);

/// The membership of this node.
pub(crate) struct Membership {
    pub(crate) me: NodeId,
    pub(crate) lease: Duration,
    /// The moment until which this node's record is surely there, by its own clock: counted from
    /// before the write that was acknowledged. `None` if this node is alone.
    until: watch::Sender<Option<Instant>>,
    changed: Notify,
    /// The number of changes of the record.
    version: AtomicU64,
    /// The version of the record that the others can know; the last of all once this node has left.
    announced: watch::Sender<u64>,
    /// Held while the record is written or removed: a late write would undo the removal.
    writing: Mutex<()>,
    /// The record is removed, and not written any more.
    has_left: AtomicBool,
}

impl Membership {
    pub(crate) fn new(me: NodeId, lease: Duration) -> Self {
        Self {
            me,
            lease,
            until: watch::Sender::new(None),
            changed: Notify::new(),
            version: AtomicU64::new(0),
            announced: watch::Sender::new(0),
            writing: Mutex::new(()),
            has_left: AtomicBool::new(false),
        }
    }

    /// Returns the moment until which the leases of this node hold; `None` without servers: for
    /// ever.
    pub(crate) fn until(&self) -> watch::Receiver<Option<Instant>> {
        self.until.subscribe()
    }

    /// Makes the record be written soon, because it changed; returns its new version.
    pub(crate) fn change(&self) -> u64 {
        let version = self.version.fetch_add(1, Ordering::SeqCst) + 1;
        self.changed.notify_one();
        version
    }

    /// Waits until the record is written as it is now, or this node has left.
    pub(crate) async fn announced(&self) {
        let version = self.change();
        let mut announced = self.announced.subscribe();
        // The sender is in `self`, so the wait cannot fail.
        let _ = announced.wait_for(|known| *known >= version).await;
    }

    /// Keeps the record until it is removed, or the node is gone.
    pub(crate) async fn keep(self: Arc<Self>, node: Weak<Core>) {
        let every = self.lease / RENEWALS_IN_LEASE;
        let mut next = Instant::now();
        loop {
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.changed.notified() => sleep(CHANGES_EVERY).await,
            }
            let Some(core) = node.upgrade() else { return };
            let Some(nats) = core.nats() else { return };
            // Before the record is made, which may have more.
            let version = self.version.load(Ordering::SeqCst);
            next = match self.write(&nats.stores, &core.record()).await {
                Ok(()) => {
                    self.announced.send_replace(version);
                    Instant::now() + every
                }
                Err(WriteError::Left) => {
                    self.announced.send_replace(u64::MAX);
                    return;
                }
                Err(error) => {
                    tracing::warn!(target: TARGET, %error, "this node's record was not written");
                    let restored = timeout(every, nats.stores.restore_nodes()).await;
                    if let Ok(Err(error)) = restored {
                        tracing::warn!(target: TARGET, %error, "the bucket of nodes is not there");
                    }
                    Instant::now() + every / 4
                }
            };
        }
    }

    /// Writes the record once.
    pub(crate) async fn write(&self, stores: &Stores, record: &Record) -> Result<(), WriteError> {
        let _writing = self.writing.lock().await;
        if self.has_left.load(Ordering::Relaxed) {
            return Err(WriteError::Left);
        }
        let bytes = serde_json::to_vec(record).map(Bytes::from)?;
        // The age of a bucket that has records is not changed; of one that had none, as after a
        // long absence of the servers, it may have been.
        let was_there = self
            .until
            .borrow()
            .is_some_and(|until| Instant::now() < until);
        if !was_there {
            self.check_lease(stores).await?;
        }
        let begin = Instant::now();
        let put = timeout(self.step_max(), stores.nodes.put(self.me.as_str(), bytes)).await;
        put.map_err(|_| WriteError::Late)??;
        if !was_there && let Err(error) = self.check_lease(stores).await {
            self.delete(&stores.nodes).await;
            return Err(error);
        }
        self.until.send_replace(Some(begin + self.lease));
        Ok(())
    }

    async fn check_lease(&self, stores: &Stores) -> Result<(), WriteError> {
        let checked = timeout(self.step_max(), stores.check_lease(self.lease)).await;
        Ok(checked.map_err(|_| WriteError::Late)??)
    }

    /// Returns the time within which a server must respond.
    fn step_max(&self) -> Duration {
        self.lease / RENEWALS_IN_LEASE
    }

    /// Removes the record: this node leaves.
    pub(crate) async fn remove(&self, bucket: &Store) {
        self.has_left.store(true, Ordering::Relaxed);
        let _writing = self.writing.lock().await;
        // From the moment when the others may not see it any more.
        self.until.send_replace(Some(Instant::now()));
        self.delete(bucket).await;
    }

    async fn delete(&self, bucket: &Store) {
        let deleted = timeout(self.lease / 2, bucket.delete(self.me.as_str())).await;
        if !matches!(deleted, Ok(Ok(()))) {
            tracing::info!(target: TARGET, "this node's record stays until its lease ends");
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("no acknowledgement came within a third of the lease")]
    Late,
    #[error("this node has left")]
    Left,
    #[error(transparent)]
    Lease(#[from] ConnectError),
    #[error(transparent)]
    Put(#[from] async_nats::jetstream::kv::PutError),
    #[error(transparent)]
    Record(#[from] serde_json::Error),
}

/// The look at the bucket of nodes, and so at all that this node knows of the others.
pub(crate) struct Watcher {
    pub(crate) client: Client,
    pub(crate) bucket: Store,
    pub(crate) table: Arc<Table>,
    pub(crate) me: NodeId,
    pub(crate) lease: Duration,
}

impl Watcher {
    /// Follows the bucket, for ever.
    ///
    /// A node's own record is among those that come. One that does not hear of itself for some
    /// leases takes another connection: its server may have been cut off or paused, and respond
    /// to it without getting anything from the others any more.
    pub(crate) async fn follow(self) {
        let backoff = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(2))
            .with_jitter()
            .without_max_times();
        let mut pauses = backoff.build();
        let mut heard = Instant::now();
        loop {
            match self.bucket.watch_with_history(">").await {
                Ok(entries) => {
                    pauses = backoff.build();
                    self.read(entries, &mut heard).await;
                }
                Err(error) => tracing::info!(target: TARGET, %error, "nodes cannot be watched"),
            }
            self.expire();
            if self.is_deaf(heard) {
                tracing::warn!(target: TARGET, "nothing is heard of this node: it connects anew");
                if let Err(error) = self.client.force_reconnect().await {
                    tracing::error!(target: TARGET, %error, "the connection has ended for good");
                }
                heard = Instant::now();
            }
            sleep(pauses.next().unwrap_or(Duration::from_secs(2))).await;
        }
    }

    /// Reads the records until the watch is lost, or this node's own is missing.
    async fn read(&self, mut entries: Watch, heard: &mut Instant) {
        let mut sweep = tokio::time::interval(self.grace());
        loop {
            tokio::select! {
                entry = entries.next() => match entry {
                    Some(Ok(entry)) => {
                        if entry.key == self.me.as_str() {
                            *heard = Instant::now();
                        }
                        note(&self.table, &entry);
                    }
                    Some(Err(error)) => {
                        tracing::info!(target: TARGET, %error, "the watch of nodes was lost");
                        return;
                    }
                    None => return,
                },
                _ = sweep.tick() => {
                    self.expire();
                    if self.is_deaf(*heard) {
                        return;
                    }
                }
            }
        }
    }

    fn expire(&self) {
        self.table.expire(self.lease + self.grace());
    }

    fn grace(&self) -> Duration {
        self.lease / RENEWALS_IN_LEASE
    }

    fn is_deaf(&self, heard: Instant) -> bool {
        heard.elapsed() > self.lease * DEAF_LEASES
    }
}

fn note(table: &Table, entry: &Entry) {
    let Some(id) = NodeId::read(&entry.key) else {
        return;
    };
    if entry.operation != Operation::Put {
        table.left(&id);
        return;
    }
    match serde_json::from_slice(&entry.value) {
        Ok(record) => table.heard(&id, &record),
        Err(error) => tracing::warn!(target: TARGET, node = %id, %error, "a node's record"),
    }
}

const TARGET: &str = "greenroom::cluster";

#[cfg(test)]
mod tests;
