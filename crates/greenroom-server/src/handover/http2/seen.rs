use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::Rc;

use super::frames::Frames;
use crate::event_loop::Clock;

/// Both directions of the socket, as far as they went.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) from_client: RefCell<Frames>,
    pub(super) to_client: RefCell<Frames>,
    /// The system has taken all that may be sent: what is left waits for the client to open its
    /// window.
    pub(super) is_flushed: Cell<bool>,
    /// The socket may have more, which is read when the connection has its turn.
    pub(super) waits_for_turn: Cell<bool>,
}

impl Seen {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            from_client: RefCell::new(Frames::of_client()),
            to_client: RefCell::new(Frames::of_server()),
            is_flushed: Cell::new(true),
            waits_for_turn: Cell::new(false),
        })
    }

    /// Bytes of responses that the client lets the server send, over all streams.
    pub(super) fn window(&self) -> u64 {
        let opened = self.from_client.borrow().window();
        opened.saturating_sub(self.to_client.borrow().data_bytes())
    }

    pub(super) fn note_sent(&self, parts: &[IoSlice<'_>], mut sent: usize, clock: &Clock) {
        let mut frames = self.to_client.borrow_mut();
        for part in parts {
            let length = part.len().min(sent);
            frames.note(&part[..length], clock.now());
            sent -= length;
        }
    }
}
