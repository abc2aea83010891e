use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use greenroom::actor::ActorRef;

use super::client::{Client, Wake};
use super::log::Log;

/// What the Feeder and a client have in common: the Feeder rings, the client comes and looks.
#[derive(Debug)]
pub(super) struct Bell {
    client: ActorRef<Client>,
    /// It was rung, and the client has not come yet.
    is_rung: AtomicBool,
    /// The client has left.
    is_left: AtomicBool,
    /// The Feeder that knew of this client's topics is no more.
    is_lost: AtomicBool,
    /// It stands in the Feeder's agenda. The Feeder's own.
    pub(super) is_due: AtomicBool,
    /// Not to be rung before, in milliseconds of the Feeder's clock. The Feeder's own.
    pub(super) rests_until: AtomicU64,
    /// Logs of topics that it asked to watch and now does.
    opened: Mutex<Vec<Arc<Log>>>,
}

impl Bell {
    pub(super) fn new(client: ActorRef<Client>) -> Self {
        Self {
            client,
            is_rung: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            is_due: AtomicBool::new(false),
            rests_until: AtomicU64::new(0),
            opened: Mutex::default(),
        }
    }

    /// Wakes the client, unless it is about to come anyway; false if it is too busy, and is to be rung again.
    pub(super) fn ring(&self) -> bool {
        if self.is_left() || self.is_rung.swap(true, Ordering::AcqRel) {
            return true;
        }
        match self.client.tell(Wake) {
            Ok(()) => true,
            Err(error) if error.is_full() => {
                self.is_rung.store(false, Ordering::Release);
                false
            }
            Err(_) => {
                self.leave();
                true
            }
        }
    }

    /// Hands over the log of a topic that the client asked for. To be followed by a ring.
    pub(super) fn open(&self, log: Arc<Log>) {
        self.opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(log);
    }

    /// The client comes: whatever happens from now on rings anew.
    pub(super) fn answer(&self) -> Vec<Arc<Log>> {
        self.is_rung.swap(false, Ordering::AcqRel);
        std::mem::take(&mut *self.opened.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }

    /// Nobody will ring any more.
    pub(super) fn lose(&self) {
        self.is_lost.store(true, Ordering::Release);
        self.ring();
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }
}
