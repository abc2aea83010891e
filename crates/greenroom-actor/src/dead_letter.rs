//! Dead letters: messages that were not delivered, or whose handler failed.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::raw::Undelivered;
use crate::reason::{REASONS, Reason, Why};
use crate::recipient::Recipient;

/// A message that was not delivered, or whose handler failed. Clones are the same letter.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// The path of the actor that it was for.
    pub receiver: Arc<str>,
    /// The type of the message.
    pub message: &'static str,
    /// The reason for which it was not handled.
    pub reason: Reason,
    /// The text of the panic, if its handler panicked.
    pub panic: Option<Arc<str>>,
    content: Content,
}

type Content = Arc<Mutex<Option<Box<dyn Any + Send>>>>;

impl DeadLetter {
    /// Takes the message out, to send it once more or to look at it. Returns `None` if it is of
    /// another type, if a handler had it already, or if another subscriber took it.
    #[must_use]
    pub fn take_content<M: 'static>(&self) -> Option<M> {
        let mut content = self.content.lock();
        match content.take()?.downcast() {
            Ok(message) => Some(*message),
            Err(other) => {
                *content = Some(other);
                None
            }
        }
    }
}

/// The dead letters of a system: counted by reason, logged by `tracing` (target
/// `greenroom::actor::dead_letter`, level DEBUG), and sent to subscribers.
#[derive(Default)]
pub struct DeadLetters {
    counts: [AtomicU64; REASONS],
    /// Posting takes a clone: letters are sent, and dropped, outside of the lock.
    subscribers: RwLock<Arc<Vec<Recipient<DeadLetter>>>>,
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(Reason::ALL.map(|reason| (reason, self.count(reason))))
            .finish()
    }
}

impl DeadLetters {
    /// Returns the number of dead letters for this reason.
    #[must_use]
    pub fn count(&self, reason: Reason) -> u64 {
        self.counts[reason as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of all dead letters.
    #[must_use]
    pub fn total(&self) -> u64 {
        Reason::ALL.map(|reason| self.count(reason)).iter().sum()
    }

    /// Sends every dead letter from now on to an actor, as long as that lives: each letter once,
    /// however often it subscribes. A letter that does not fit into its mailbox is counted, but not
    /// sent.
    pub fn subscribe(&self, recipient: Recipient<DeadLetter>) {
        let mut subscribers = self.subscribers.write();
        let mut alive = Vec::clone(&subscribers);
        alive.retain(|other| other.is_alive() && other.id() != recipient.id());
        alive.push(recipient);
        let before = std::mem::replace(&mut *subscribers, Arc::new(alive));
        drop(subscribers);
        drop(before);
    }

    /// Forgets the subscribers, which hold the system.
    pub(crate) fn clear(&self) {
        let before = std::mem::take(&mut *self.subscribers.write());
        drop(before);
    }

    pub(crate) fn post(&self, receiver: &dyn Fn() -> String, letter: Undelivered, why: Why<'_>) {
        self.counts[why.reason as usize].fetch_add(1, Ordering::Relaxed);
        metrics::counter!("greenroom_actor_dead_letters_total", "reason" => why.reason.label())
            .increment(1);
        // A subscriber that cannot take a letter would be sent that letter's letter, for ever.
        if letter.message == std::any::type_name::<DeadLetter>() {
            return;
        }
        let subscribers = Arc::clone(&self.subscribers.read());
        let is_traced = tracing::enabled!(target: TARGET, tracing::Level::DEBUG);
        if subscribers.is_empty() && !is_traced {
            return;
        }
        let receiver = receiver();
        tracing::debug!(
            target: TARGET,
            %receiver,
            message = letter.message,
            reason = %why.reason,
            panic = why.panic,
            "dead letter"
        );
        let letter = DeadLetter {
            receiver: receiver.into(),
            message: letter.message,
            reason: why.reason,
            panic: why.panic.map(Arc::from),
            content: Arc::new(Mutex::new(letter.content)),
        };
        for subscriber in subscribers.iter() {
            let _ = subscriber.tell(letter.clone());
        }
    }
}

const TARGET: &str = "greenroom::actor::dead_letter";
