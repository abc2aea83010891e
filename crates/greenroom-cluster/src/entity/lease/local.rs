use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::{BoxFuture, FutureExt, ready};
use greenroom_actor::BoxError;
use parking_lot::Mutex;

use super::{Claim, Leases};
use crate::entity::Key;

/// The nodes of one process that share leases. One, unless in tests.
#[derive(Clone, Debug)]
pub(crate) struct LocalNodes(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The last fence that was given. Begins with the clock's microseconds, so that the fences of a
    /// process are larger than those of the one before it, which a storage may have kept.
    fence: u64,
    nodes: HashSet<String>,
    /// As many at most as entities are active.
    leases: HashMap<Key, Lease>,
}

#[derive(Debug)]
struct Lease {
    node: String,
    fence: u64,
}

/// The leases of one node of a process.
#[derive(Debug)]
pub(crate) struct LocalLeases {
    nodes: LocalNodes,
    node: String,
}

impl LocalNodes {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.map_or(0, |since| since.as_micros());
        Self(Arc::new(Mutex::new(State {
            fence: u64::try_from(micros).unwrap_or(0),
            nodes: HashSet::new(),
            leases: HashMap::new(),
        })))
    }

    /// Registers a node, and returns its leases.
    pub(crate) fn register(&self, node: &str) -> LocalLeases {
        self.0.lock().nodes.insert(node.to_owned());
        LocalLeases {
            nodes: self.clone(),
            node: node.to_owned(),
        }
    }

    /// Ends a node as its lease would, without telling it.
    #[cfg(test)]
    pub(crate) fn expire(&self, node: &str) {
        self.0.lock().nodes.remove(node);
    }
}

impl State {
    fn claim(&mut self, key: &Key, node: &str) -> Claim {
        if let Some(lease) = self.leases.get(key)
            && lease.node != node
            && self.nodes.contains(&lease.node)
        {
            let node = lease.node.clone();
            return Claim::HeldBy { node };
        }
        self.fence += 1;
        let lease = Lease {
            node: node.to_owned(),
            fence: self.fence,
        };
        self.leases.insert(key.clone(), lease);
        Claim::Owned { fence: self.fence }
    }

    fn release(&mut self, key: &Key, fence: u64) {
        if self
            .leases
            .get(key)
            .is_some_and(|lease| lease.fence == fence)
        {
            self.leases.remove(key);
        }
    }
}

impl Leases for LocalLeases {
    fn claim<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Claim, BoxError>> {
        ready(Ok(self.nodes.0.lock().claim(key, &self.node))).boxed()
    }

    fn release<'a>(&'a self, key: &'a Key, fence: u64) -> BoxFuture<'a, Result<(), BoxError>> {
        self.nodes.0.lock().release(key, fence);
        ready(Ok(())).boxed()
    }
}
