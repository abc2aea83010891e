//! What waits to be published.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::lock::lock;
use crate::{Accepted, PublishError, Topic};

use super::settings::{RedisSettings, WhileAway};

type Answer = Result<Accepted, PublishError>;

/// A queue that is bounded in messages and in bytes, those on their way included.
pub(crate) struct Outbox {
    while_away: WhileAway,
    messages_max: usize,
    bytes_max: usize,
    messages_free: Arc<Semaphore>,
    bytes_free: Arc<Semaphore>,
    state: Mutex<State>,
    /// There is something to send.
    pub(super) filled: Notify,
    went_away: Notify,
}

struct State {
    entries: VecDeque<Entry>,
    is_away: bool,
}

pub(super) struct Entry {
    pub(super) topic: Topic,
    pub(super) payload: Bytes,
    answer: Option<oneshot::Sender<Answer>>,
    room: Room,
}

/// Given back when dropped.
struct Room {
    _message: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

impl Outbox {
    pub(super) fn new(settings: &RedisSettings) -> Self {
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

    pub(crate) async fn publish(&self, topic: Topic, payload: Bytes) -> Answer {
        let room = self.room(payload.len()).await?;
        let (sender, answer) = oneshot::channel();
        let entry = Entry {
            topic,
            payload,
            answer: Some(sender),
            room,
        };
        self.push(entry)?;
        answer.await.unwrap_or(Err(PublishError::Away))
    }

    pub(crate) fn try_publish(&self, topic: Topic, payload: Bytes) -> Answer {
        if self.refuses() {
            return Err(PublishError::Away);
        }
        let room = self.try_room(payload.len()).ok_or_else(|| self.full())?;
        let entry = Entry {
            topic,
            payload,
            answer: None,
            room,
        };
        self.push(entry)?;
        Ok(Accepted::Queued)
    }

    /// The connection is lost. Returns how many messages are given up.
    pub(super) fn go_away(&self) -> usize {
        let mut state = lock(&self.state);
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

    pub(super) fn come_back(&self) {
        lock(&self.state).is_away = false;
        self.filled.notify_one();
    }

    /// The next messages to send together. At least one, if there is one.
    pub(super) fn next_batch(&self, messages_max: usize, bytes_max: usize) -> Vec<Entry> {
        let mut state = lock(&self.state);
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

    /// Takes back what was not sent, before all that waits.
    pub(super) fn give_back(&self, entries: Vec<Entry>) {
        let mut state = lock(&self.state);
        for entry in entries.into_iter().rev() {
            state.entries.push_front(entry);
        }
    }

    /// Messages and bytes that wait or are on their way.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (
            self.messages_max - self.messages_free.available_permits(),
            self.bytes_max - self.bytes_free.available_permits(),
        )
    }

    fn push(&self, mut entry: Entry) -> Result<(), PublishError> {
        let mut state = lock(&self.state);
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

    /// Waits for room only while Redis is there.
    async fn room(&self, bytes: usize) -> Result<Room, PublishError> {
        let mut went_away = std::pin::pin!(self.went_away.notified());
        went_away.as_mut().enable();
        if self.refuses() {
            return Err(PublishError::Away);
        }
        if let Some(room) = self.try_room(bytes) {
            return Ok(room);
        }
        if lock(&self.state).is_away {
            return Err(self.full());
        }
        tokio::select! {
            biased;
            room = self.wait_for_room(bytes) => room,
            () = went_away => match self.while_away {
                WhileAway::Fail => Err(PublishError::Away),
                WhileAway::Queue => self.try_room(bytes).ok_or_else(|| self.full()),
            },
        }
    }

    async fn wait_for_room(&self, bytes: usize) -> Result<Room, PublishError> {
        let message = Arc::clone(&self.messages_free).acquire_owned().await;
        let bytes = Arc::clone(&self.bytes_free)
            .acquire_many_owned(permits(bytes))
            .await;
        match (message, bytes) {
            (Ok(message), Ok(bytes)) => Ok(Room {
                _message: message,
                _bytes: bytes,
            }),
            // The semaphores are never closed.
            _ => Err(self.full()),
        }
    }

    fn try_room(&self, bytes: usize) -> Option<Room> {
        let message = Arc::clone(&self.messages_free).try_acquire_owned().ok()?;
        let bytes = Arc::clone(&self.bytes_free).try_acquire_many_owned(permits(bytes));
        Some(Room {
            _message: message,
            _bytes: bytes.ok()?,
        })
    }

    fn refuses(&self) -> bool {
        self.while_away == WhileAway::Fail && lock(&self.state).is_away
    }

    fn full(&self) -> PublishError {
        PublishError::QueueFull {
            messages: self.messages_max,
            bytes: self.bytes_max,
        }
    }
}

impl Entry {
    pub(super) fn succeed(self) {
        self.finish(Ok(Accepted::Published));
    }

    pub(super) fn fail(self, error: PublishError) {
        self.finish(Err(error));
    }

    /// Gives back its room first, so that who is answered finds it.
    fn finish(self, answer: Answer) {
        drop(self.room);
        tell(self.answer, answer);
    }

    fn queued(&mut self) {
        tell(self.answer.take(), Ok(Accepted::Queued));
    }
}

/// Who does not wait any more does not want to know.
fn tell(sender: Option<oneshot::Sender<Answer>>, answer: Answer) {
    if let Some(sender) = sender {
        let _ = sender.send(answer);
    }
}

/// Payloads are at most [`PAYLOAD_BYTES_MAX`](crate::PAYLOAD_BYTES_MAX) long.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
