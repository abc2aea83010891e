use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::owner::{Owner, TooMany};

/// Seconds after which a client may try again that has too many connections: nobody knows when one
/// ends.
const RETRY_AFTER: u64 = 1;

/// The number of connections of each owner. There are no more entries than connections.
#[derive(Debug)]
pub(crate) struct Connections {
    counts: Mutex<HashMap<Owner, usize>>,
    each_max: usize,
}

/// A connection's place in the count of its owner, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    connections: Arc<Connections>,
    owner: Owner,
}

impl Connections {
    pub(crate) fn new(each_max: usize) -> Arc<Self> {
        Arc::new(Self {
            counts: Mutex::default(),
            each_max,
        })
    }

    pub(crate) fn take(self: &Arc<Self>, owner: Owner) -> Result<Place, TooMany> {
        let mut counts = self.counts.lock();
        let count = counts.get(&owner).copied().unwrap_or(0);
        if count >= self.each_max {
            let retry_after = RETRY_AFTER;
            return Err(TooMany { retry_after });
        }
        counts.insert(owner, count + 1);
        Ok(Place {
            connections: Arc::clone(self),
            owner,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.connections.counts.lock();
        match counts.get_mut(&self.owner) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                counts.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_none_is_forgotten() {
        let connections = Connections::new(2);
        let owner = Owner(1);
        let places = [connections.take(owner), connections.take(owner)];
        assert!(connections.take(owner).is_err());
        assert!(connections.take(Owner(2)).is_ok());
        drop(places);
        assert!(connections.counts.lock().is_empty());
    }
}
