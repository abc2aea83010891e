use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use greenroom_http::BodyLength;
use greenroom_timing::tell_body_part;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;

use super::{BodyError, BodyPace};

/// The connection's end of a body that is handed over frame by frame. There is room for one frame,
/// so the client is read only when the application has taken the frame before.
#[derive(Debug)]
pub(crate) struct Feeder {
    slot: Arc<Mutex<Slot>>,
    bytes_max: u64,
    pub(crate) pace: BodyPace,
    pub(crate) received: u64,
    /// Trailers that came right behind a part that is not taken yet.
    pub(crate) trailers: Option<Box<HeaderMap>>,
    promised: Option<u64>,
}

/// The application's end.
#[derive(Debug)]
pub(crate) struct Reader {
    slot: Arc<Mutex<Slot>>,
    takes_turns: bool,
}

#[derive(Debug)]
struct Slot {
    part: Option<Frame<Bytes>>,
    /// The end of the body, once it came.
    end: Option<Result<(), BodyError>>,
    /// Bytes that the reader has yet to take, if the client said how many.
    left: Option<u64>,
    wanted: bool,
    reader: Option<Waker>,
    connection: Waker,
}

/// Both ends of a body of at most `bytes_max` bytes.
pub(crate) fn pair(length: BodyLength, bytes_max: u64, pace: BodyPace) -> (Feeder, Reader) {
    let promised = match length {
        BodyLength::None => Some(0),
        BodyLength::Exact(bytes) => Some(bytes),
        BodyLength::Chunked => None,
    };
    let slot = Arc::new(Mutex::new(Slot {
        part: None,
        end: None,
        left: promised,
        wanted: false,
        reader: None,
        connection: Waker::noop().clone(),
    }));
    let feeder = Feeder {
        slot: Arc::clone(&slot),
        bytes_max,
        pace,
        received: 0,
        trailers: None,
        promised,
    };
    let reader = Reader {
        slot,
        takes_turns: true,
    };
    (feeder, reader)
}

impl Feeder {
    /// Returns `true` if the application waits for a frame. `cx` is the connection's task, to be
    /// woken when it does so later from another.
    pub(crate) fn is_wanted(&self, cx: &Context<'_>) -> bool {
        let mut slot = self.slot.lock();
        if !slot.connection.will_wake(cx.waker()) {
            slot.connection.clone_from(cx.waker());
        }
        slot.wanted && slot.part.is_none() && slot.end.is_none()
    }

    /// Returns `true` if what is promised, or was received with `more` bytes behind it, is over the
    /// limit.
    pub(crate) fn exceeds_limit(&self, more: usize) -> bool {
        let received = self.received.saturating_add(more as u64);
        received.max(self.promised.unwrap_or(0)) > self.bytes_max
    }

    /// Bytes that the client is still to send, as far as it said how many, and nobody will read.
    pub(crate) fn unread(&self) -> u64 {
        if Arc::strong_count(&self.slot) > 1 {
            return 0;
        }
        self.promised.unwrap_or(0).saturating_sub(self.received)
    }

    /// Bytes that the application has not taken yet.
    pub(crate) fn held(&self) -> usize {
        let slot = self.slot.lock();
        let data = slot.part.as_ref().and_then(Frame::data_ref);
        data.map_or(0, Bytes::len)
    }

    /// Hands a frame over. The connection's own task is not woken: it goes on anyway.
    pub(crate) fn feed(&mut self, part: Frame<Bytes>, cx: &Context<'_>) {
        let mut slot = self.slot.lock();
        if let Some(data) = part.data_ref() {
            self.received += data.len() as u64;
        }
        slot.part = Some(part);
        slot.wanted = false;
        let reader = slot.reader.take();
        // A waker may run what it wakes, or drop it: not while the lock is held.
        drop(slot);
        match reader {
            Some(reader) if !reader.will_wake(cx.waker()) => reader.wake(),
            _ => {}
        }
    }

    /// Ends the body, behind a part that is not taken yet. The first end counts.
    pub(crate) fn end(&self, end: Result<(), BodyError>) {
        let mut slot = self.slot.lock();
        slot.end.get_or_insert(end);
        let reader = slot.reader.take();
        drop(slot);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// A reader of the body of a request that is over must not wait for ever.
impl Drop for Feeder {
    fn drop(&mut self) {
        self.end(Err(BodyError::Application));
    }
}

impl Slot {
    /// Asks for a frame. Returns the connection to be woken, unless it goes on anyway.
    #[must_use = "it is woken once the lock is not held any more"]
    fn ask(&mut self, cx: &Context<'_>) -> Option<Waker> {
        self.wanted = true;
        match &self.reader {
            Some(reader) if reader.will_wake(cx.waker()) => {}
            _ => self.reader = Some(cx.waker().clone()),
        }
        let is_own = self.connection.will_wake(cx.waker());
        (!is_own).then(|| self.connection.clone())
    }
}

/// A body that nobody holds any more is not waited for, though it was asked for.
impl Drop for Reader {
    fn drop(&mut self) {
        let mut slot = self.slot.lock();
        let was_wanted = std::mem::take(&mut slot.wanted);
        let connection = was_wanted.then(|| slot.connection.clone());
        drop(slot);
        if let Some(connection) = connection {
            connection.wake();
        }
    }
}

impl Reader {
    /// Makes it one of a connection that takes no turns with others: the loop may look after
    /// nothing else between two parts, so what is done with them counts in full.
    #[cfg(feature = "http3")]
    pub(crate) fn without_turns(mut self) -> Self {
        self.takes_turns = false;
        self
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut slot = self.slot.lock();
        if let Some(part) = slot.part.take() {
            let length = part.data_ref().map_or(0, Bytes::len) as u64;
            slot.left = slot.left.map(|left| left.saturating_sub(length));
            if self.takes_turns {
                tell_body_part(length);
            }
            return Poll::Ready(Some(Ok(part)));
        }
        match slot.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                let connection = slot.ask(cx);
                // On another thread, which would wait for the lock: on a busy machine for as long
                // as this one waits for its processor again.
                drop(slot);
                if let Some(connection) = connection {
                    connection.wake();
                }
                Poll::Pending
            }
        }
    }

    pub(crate) fn is_end(&self) -> bool {
        let slot = self.slot.lock();
        slot.part.is_none() && (slot.left == Some(0) || slot.end == Some(Ok(())))
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self.slot.lock().left {
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;

    /// A connection on another thread, which looks at the slot at once when it is woken.
    struct Connection {
        slot: Arc<Mutex<Slot>>,
        has_looked: AtomicBool,
    }

    impl Wake for Connection {
        fn wake(self: Arc<Self>) {
            let is_free = self.slot.try_lock().is_some();
            self.has_looked.store(is_free, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_connection_that_is_woken_does_not_wait_for_the_reader() {
        let (feeder, mut reader) = pair(BodyLength::Chunked, 1, BodyPace::default());
        let connection = || {
            Arc::new(Connection {
                slot: Arc::clone(&feeder.slot),
                has_looked: AtomicBool::new(false),
            })
        };
        let [asked, dropped] = [connection(), connection()];
        let has_looked = |connection: &Connection| connection.has_looked.load(Ordering::Relaxed);

        feeder.is_wanted(&Context::from_waker(&Arc::clone(&asked).into()));
        let frame = reader.poll_frame(&Context::from_waker(Waker::noop()));
        assert!(frame.is_pending() && has_looked(&asked));

        feeder.is_wanted(&Context::from_waker(&Arc::clone(&dropped).into()));
        drop(reader);
        assert!(has_looked(&dropped));
    }
}
