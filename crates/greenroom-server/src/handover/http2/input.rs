use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use super::seen::Seen;
use crate::body::Intake;
use crate::memory::{Held, Memory};

/// Bytes of requests' bodies that a client may send before the application takes them: of all the
/// streams of a connection.
pub(super) const INPUT_BYTES_MAX: u32 = 1_024 * 1_024;
/// The same of one stream: as little of all that three which nobody reads hold up no other.
///
/// A body comes no faster than this in each round trip: at 2.6 MB/s over 100 ms, at 13 MB/s over
/// 20 ms.
pub(super) const STREAM_INPUT_BYTES_MAX: u32 = 256 * 1_024;
/// That of all while the memory for all connections is used up.
const SHORT_BYTES_MAX: usize = 64 * 1_024;

/// Bytes that a connection has received and the application has not taken, and its memory in all.
#[derive(Debug)]
pub(super) struct Input {
    seen: Rc<Seen>,
    intake: Arc<Intake>,
    /// Bytes that no application is to take: of bodies that were dropped.
    dropped: Cell<u64>,
    /// Bytes that the connection holds, as it last told the server.
    held: Held,
    /// Nothing more was read, because there is no memory for it.
    is_paused: Cell<bool>,
}

impl Input {
    pub(super) fn new(seen: Rc<Seen>, memory: Arc<Memory>) -> Rc<Self> {
        Rc::new(Self {
            seen,
            intake: Arc::default(),
            dropped: Cell::new(0),
            held: Held::new(memory),
            is_paused: Cell::new(false),
        })
    }

    /// Returns the counter that the bodies of requests report to.
    pub(super) fn intake(&self) -> Arc<Intake> {
        Arc::clone(&self.intake)
    }

    /// Returns `true` if there is memory to read more for the application than it takes.
    pub(super) fn may_read(&self) -> bool {
        let is_paused = self.held.is_full() && self.untaken() >= SHORT_BYTES_MAX;
        self.is_paused.set(is_paused);
        !is_paused
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    /// Tells the server what the connection holds, of which `of_streams` are heads and responses.
    pub(super) fn note_held(&self, of_streams: usize) {
        let unfinished = self.seen.from_client.borrow().head_bytes();
        self.held.note(of_streams + unfinished + self.untaken());
    }

    /// Returns `true` if a head is only half there, and other connections hold all the memory.
    pub(super) fn has_head_too_many(&self) -> bool {
        let head = self.seen.from_client.borrow().head_bytes();
        head > 0 && self.held.is_full_beside()
    }

    /// Has `connection` woken when the last byte of a body was taken.
    pub(super) fn tell(&self, connection: &Waker) {
        self.intake.tell(connection);
    }

    /// Bytes of bodies that were received and not taken.
    ///
    /// Those of bodies that were dropped count no more once no body is open. Until then they are
    /// bounded by the window: what the client was let send again has been released.
    fn untaken(&self) -> usize {
        let received = self.seen.from_client.borrow().data_bytes();
        let taken = self.intake.taken();
        if !self.intake.is_open() {
            self.dropped.set(received.saturating_sub(taken));
            return 0;
        }
        let untaken = received.saturating_sub(taken + self.dropped.get());
        let window = self.seen.to_client.borrow().window();
        let unreleased = (u64::from(INPUT_BYTES_MAX) + received).saturating_sub(window);
        usize::try_from(untaken.min(unreleased)).unwrap_or(usize::MAX)
    }
}
