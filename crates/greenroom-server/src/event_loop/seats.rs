use std::sync::Arc;

use tokio::sync::Notify;

use super::Balance;
use crate::addresses::Place;

/// A loop's place in the balance.
#[derive(Debug)]
pub(crate) struct Seats {
    index: usize,
    pub(crate) balance: Arc<Balance>,
    /// Notified when a connection of the loop ends.
    pub(crate) left: Notify,
}

/// A connection's place in the count, until it is dropped. It goes with the connection, even to
/// another thread with an upgraded one.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    /// Its place among those of its address, if that is limited.
    _place: Option<Place>,
}

impl Seats {
    pub(crate) fn new(index: usize, balance: Arc<Balance>) -> Self {
        Self {
            index,
            balance,
            left: Notify::new(),
        }
    }

    pub(crate) fn take(self: &Arc<Self>, place: Option<Place>) -> Seat {
        self.balance.add(self.index);
        Seat {
            seats: Arc::clone(self),
            _place: place,
        }
    }

    pub(crate) fn are_empty(&self) -> bool {
        self.balance.count(self.index) == 0
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.balance.remove(self.seats.index);
        self.seats.left.notify_one();
    }
}
