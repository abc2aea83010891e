//! The end of a batch, noticed without a counter shared by all messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A meeting of parties; the last one to arrive wakes the task that waits.
#[derive(Debug)]
pub struct Finish {
    parties: usize,
    missing: AtomicUsize,
    all_arrived: Notify,
}

/// One party: it counts its own messages, and arrives with the last of a batch.
#[derive(Debug)]
pub struct Countdown {
    finish: Arc<Finish>,
    batch: u64,
    left: u64,
}

impl Finish {
    /// Creates the meeting of this many parties, at least 1, again and again.
    #[must_use]
    pub fn of(parties: usize) -> Arc<Self> {
        Arc::new(Self {
            parties,
            missing: AtomicUsize::new(parties),
            all_arrived: Notify::new(),
        })
    }

    /// Notes that one party has done its part.
    pub fn arrive(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Nobody begins the next batch before the task that waits is awake.
            self.missing.store(self.parties, Ordering::Release);
            self.all_arrived.notify_one();
        }
    }

    /// Waits for all parties.
    pub async fn wait(&self) {
        self.all_arrived.notified().await;
    }
}

impl Countdown {
    /// Creates a party that arrives after each `batch` messages.
    #[must_use]
    pub fn new(finish: &Arc<Finish>, batch: u64) -> Self {
        Self {
            finish: Arc::clone(finish),
            batch,
            left: batch,
        }
    }

    /// Notes that one message was handled.
    pub fn count(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.batch;
            self.finish.arrive();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_message_of_the_last_party_ends_a_batch_each_time() {
        let finish = Finish::of(2);
        let mut parties = [Countdown::new(&finish, 3), Countdown::new(&finish, 1)];
        for _ in 0..2 {
            parties[1].count();
            parties[0].count();
            parties[0].count();
            let waiting = finish.wait();
            tokio::pin!(waiting);
            tokio::select! {
                biased;
                () = &mut waiting => panic!("a message is missing"),
                () = tokio::task::yield_now() => {}
            }
            parties[0].count();
            waiting.await;
        }
    }
}
