use std::sync::Arc;

use tokio::sync::Notify;

use super::Balance;

/// A loop's place in the balance.
#[derive(Debug)]
pub(crate) struct Seats {
    index: usize,
    pub(crate) balance: Arc<Balance>,
    /// Told when a connection of the loop ends.
    pub(crate) left: Notify,
}

/// A connection's place in the count, until it is dropped. It goes wherever the connection goes,
/// even to another thread with an upgraded one.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Seats>);

impl Seats {
    pub(crate) fn new(index: usize, balance: Arc<Balance>) -> Self {
        Self {
            index,
            balance,
            left: Notify::new(),
        }
    }

    pub(crate) fn take(self: &Arc<Self>) -> Seat {
        self.balance.add(self.index);
        Seat(Arc::clone(self))
    }

    pub(crate) fn are_empty(&self) -> bool {
        self.balance.count(self.index) == 0
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.balance.remove(self.0.index);
        self.0.left.notify_one();
    }
}
