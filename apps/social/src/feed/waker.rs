use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use greenroom::actor::ActorRef;
use parking_lot::Mutex;

use super::client::{Client, Wake};
use super::log::Log;

/// The state that the Feeder and a client share: the Feeder wakes the client, which then reads.
#[derive(Debug)]
pub(super) struct Waker {
    client: ActorRef<Client>,
    /// The client has been woken, and has not handled that yet.
    is_woken: AtomicBool,
    /// The client has left.
    is_left: AtomicBool,
    /// The Feeder that knew of this client's topics has ended.
    is_lost: AtomicBool,
    /// The client is in the Feeder's agenda. Only the Feeder uses this.
    pub(super) is_due: AtomicBool,
    /// The earliest time to wake it again, in milliseconds of the Feeder's clock. Only the Feeder
    /// uses this.
    pub(super) rests_until: AtomicU64,
    /// Logs of topics that the client asked for and may now read.
    opened: Mutex<Vec<Arc<Log>>>,
}

impl Waker {
    pub(super) fn new(client: ActorRef<Client>) -> Self {
        Self {
            client,
            is_woken: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            is_due: AtomicBool::new(false),
            rests_until: AtomicU64::new(0),
            opened: Mutex::default(),
        }
    }

    /// Wakes the client, unless it has been woken already. Returns `false` if its mailbox is full,
    /// and it is to be woken later.
    pub(super) fn wake(&self) -> bool {
        if self.is_left() || self.is_woken.swap(true, Ordering::AcqRel) {
            return true;
        }
        match self.client.tell(Wake) {
            Ok(()) => true,
            Err(error) if error.is_full() => {
                self.is_woken.store(false, Ordering::Release);
                false
            }
            Err(_) => {
                self.leave();
                true
            }
        }
    }

    /// Hands the log of a topic to the client that asked for it. The caller must wake it then.
    pub(super) fn open(&self, log: Arc<Log>) {
        self.opened.lock().push(log);
    }

    /// Returns the new logs to the client; from now on the next event wakes it again.
    pub(super) fn take_opened(&self) -> Vec<Arc<Log>> {
        // Reset before the logs are taken: one that is opened later then wakes the client again.
        self.is_woken.swap(false, Ordering::AcqRel);
        std::mem::take(&mut *self.opened.lock())
    }

    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }

    /// Wakes the client for the last time, since the Feeder has ended.
    pub(super) fn lose(&self) {
        self.is_lost.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }
}
