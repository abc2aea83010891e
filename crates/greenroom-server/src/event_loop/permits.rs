use std::sync::Arc;

use tokio::sync::Notify;

use super::Balance;
use crate::addresses::Place;

/// The permits of the connections of a loop, counted in the balance of all loops.
#[derive(Debug)]
pub(crate) struct Permits {
    index: usize,
    pub(crate) balance: Arc<Balance>,
    /// Notified when a connection of the loop ends.
    pub(crate) released: Notify,
}

/// A connection counts until its permit is dropped. It goes with the connection, even to
/// another thread with an upgraded one.
#[derive(Debug)]
pub(crate) struct Permit {
    permits: Arc<Permits>,
    /// Its place among those of its address, if that is limited; on the heap, as mostly it is not.
    _place: Option<Box<Place>>,
}

impl Permits {
    pub(crate) fn new(index: usize, balance: Arc<Balance>) -> Self {
        Self {
            index,
            balance,
            released: Notify::new(),
        }
    }

    pub(crate) fn acquire(self: &Arc<Self>, place: Option<Place>) -> Permit {
        self.balance.add(self.index);
        Permit {
            permits: Arc::clone(self),
            _place: place.map(Box::new),
        }
    }

    pub(crate) fn are_all_released(&self) -> bool {
        self.balance.count(self.index) == 0
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.balance.remove(self.permits.index);
        self.permits.released.notify_one();
    }
}
