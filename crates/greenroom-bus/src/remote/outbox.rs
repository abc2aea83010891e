//! The messages that wait to be published.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{Accepted, PublishError, Topic};

use super::settings::{RemoteSettings, WhileAway};

type Reply = Result<Accepted, PublishError>;

/// A queue that is bounded in messages and in bytes, those on their way included.
pub(crate) struct Outbox {
    while_away: WhileAway,
    messages_max: usize,
    bytes_max: usize,
    messages_free: Arc<Semaphore>,
    bytes_free: Arc<Semaphore>,
    state: Mutex<State>,
    /// Notified when there is something to send.
    pub(crate) filled: Notify,
    went_away: Notify,
}

struct State {
    entries: VecDeque<Entry>,
    is_away: bool,
}

pub(crate) struct Entry {
    pub(crate) topic: Topic,
    pub(crate) payload: Bytes,
    reply: Option<oneshot::Sender<Reply>>,
    permits: Permits,
}

/// The permits of one message in the queue, given back when dropped.
struct Permits {
    _message: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

impl Outbox {
    pub(crate) fn new(settings: &RemoteSettings) -> Self {
        Self {
            while_away: settings.while_away,
            messages_max: settings.publish_queue_max,
            bytes_max: settings.publish_queue_bytes_max,
            messages_free: Arc::new(Semaphore::new(settings.publish_queue_max)),
            bytes_free: Arc::new(Semaphore::new(settings.publish_queue_bytes_max)),
            state: Mutex::new(State {
                entries: VecDeque::new(),
                is_away: true,
            }),
            filled: Notify::new(),
            went_away: Notify::new(),
        }
    }

    pub(crate) async fn publish(&self, topic: Topic, payload: Bytes) -> Reply {
        let permits = self.permits(payload.len()).await?;
        let (sender, reply) = oneshot::channel();
        let entry = Entry {
            topic,
            payload,
            reply: Some(sender),
            permits,
        };
        self.push(entry)?;
        reply.await.unwrap_or(Err(PublishError::Away))
    }

    pub(crate) fn try_publish(&self, topic: Topic, payload: Bytes) -> Reply {
        if self.refuses() {
            return Err(PublishError::Away);
        }
        let permits = self.try_permits(payload.len()).ok_or_else(|| self.full())?;
        let entry = Entry {
            topic,
            payload,
            reply: None,
            permits,
        };
        self.push(entry)?;
        Ok(Accepted::Queued)
    }

    /// Notes that the connection is lost. Returns the number of messages that are abandoned.
    pub(crate) fn go_away(&self) -> usize {
        let mut state = self.state.lock();
        state.is_away = true;
        let given_up = match self.while_away {
            WhileAway::Fail => std::mem::take(&mut state.entries),
            WhileAway::Queue => {
                state.entries.iter_mut().for_each(Entry::queued);
                VecDeque::new()
            }
        };
        drop(state);
        self.went_away.notify_waiters();
        let count = given_up.len();
        for entry in given_up {
            entry.fail(PublishError::Away);
        }
        count
    }

    pub(crate) fn come_back(&self) {
        self.state.lock().is_away = false;
        self.filled.notify_one();
    }

    /// Takes the next messages to send together: at least one, if there is one.
    pub(crate) fn next_batch(&self, messages_max: usize, bytes_max: usize) -> Vec<Entry> {
        let mut state = self.state.lock();
        let mut batch: Vec<Entry> = Vec::new();
        let mut bytes = 0;
        while let Some(entry) = state.entries.front() {
            bytes += entry.payload.len();
            if batch.len() == messages_max || (bytes > bytes_max && !batch.is_empty()) {
                self.filled.notify_one();
                break;
            }
            batch.extend(state.entries.pop_front());
        }
        batch
    }

    /// Puts messages that were not sent back in front of all others.
    pub(crate) fn give_back(&self, entries: Vec<Entry>) {
        let mut state = self.state.lock();
        for entry in entries.into_iter().rev() {
            state.entries.push_front(entry);
        }
    }

    /// Returns the messages and bytes that wait or are on their way.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (
            self.messages_max - self.messages_free.available_permits(),
            self.bytes_max - self.bytes_free.available_permits(),
        )
    }

    fn push(&self, mut entry: Entry) -> Result<(), PublishError> {
        let mut state = self.state.lock();
        if state.is_away {
            match self.while_away {
                WhileAway::Fail => return Err(PublishError::Away),
                WhileAway::Queue => entry.queued(),
            }
        }
        state.entries.push_back(entry);
        let is_away = state.is_away;
        drop(state);
        if !is_away {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits for permits, but only while the server is there.
    async fn permits(&self, bytes: usize) -> Result<Permits, PublishError> {
        let mut went_away = std::pin::pin!(self.went_away.notified());
        went_away.as_mut().enable();
        if self.refuses() {
            return Err(PublishError::Away);
        }
        if let Some(permits) = self.try_permits(bytes) {
            return Ok(permits);
        }
        if self.state.lock().is_away {
            return Err(self.full());
        }
        tokio::select! {
            biased;
            permits = self.wait_for_permits(bytes) => permits,
            () = went_away => match self.while_away {
                WhileAway::Fail => Err(PublishError::Away),
                WhileAway::Queue => self.try_permits(bytes).ok_or_else(|| self.full()),
            },
        }
    }

    async fn wait_for_permits(&self, bytes: usize) -> Result<Permits, PublishError> {
        let message = Arc::clone(&self.messages_free).acquire_owned().await;
        let bytes = Arc::clone(&self.bytes_free)
            .acquire_many_owned(byte_permits(bytes))
            .await;
        match (message, bytes) {
            (Ok(message), Ok(bytes)) => Ok(Permits {
                _message: message,
                _bytes: bytes,
            }),
            // The semaphores are never closed.
            _ => Err(self.full()),
        }
    }

    fn try_permits(&self, bytes: usize) -> Option<Permits> {
        let message = Arc::clone(&self.messages_free).try_acquire_owned().ok()?;
        let bytes = Arc::clone(&self.bytes_free).try_acquire_many_owned(byte_permits(bytes));
        Some(Permits {
            _message: message,
            _bytes: bytes.ok()?,
        })
    }

    fn refuses(&self) -> bool {
        self.while_away == WhileAway::Fail && self.state.lock().is_away
    }

    fn full(&self) -> PublishError {
        PublishError::QueueFull {
            messages: self.messages_max,
            bytes: self.bytes_max,
        }
    }
}

impl Entry {
    pub(crate) fn succeed(self) {
        self.finish(Ok(Accepted::Published));
    }

    pub(crate) fn fail(self, error: PublishError) {
        self.finish(Err(error));
    }

    /// Gives back the permits first, so that the publisher finds them free when it gets the reply.
    fn finish(self, reply: Reply) {
        drop(self.permits);
        send(self.reply, reply);
    }

    fn queued(&mut self) {
        send(self.reply.take(), Ok(Accepted::Queued));
    }
}

/// Sends the reply. A publisher that has dropped its future needs none.
fn send(sender: Option<oneshot::Sender<Reply>>, reply: Reply) {
    if let Some(sender) = sender {
        let _ = sender.send(reply);
    }
}

/// Returns the number of permits for so many bytes. Payloads are at most
/// [`PAYLOAD_BYTES_MAX`](crate::PAYLOAD_BYTES_MAX) long.
fn byte_permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
