use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::task::Waker;

use slab::Slab;

use super::entry::{Entry, Lost, Place};
use super::names::Spellings;
use crate::frame;
use crate::pool::{Pool, Settlement, Worker};

/// The input of a request besides its environment.
pub(crate) enum Input<'a> {
    /// The whole body.
    Bytes(&'a [u8]),
    /// The path of a file that holds the body.
    File(&'a [u8]),
    /// The token of a raw connection (`psgix.io`).
    Io(u32),
}

/// A connection to one worker. It belongs to one loop.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) pool: Arc<Pool>,
    pub(super) worker: Arc<Worker>,
    pub(super) entries: RefCell<Slab<Entry>>,
    pub(super) out: RefCell<Vec<u8>>,
    pub(super) settlement: RefCell<Settlement>,
    pub(super) spellings: Spellings,
    /// The waker of the driver; `Some` while it sleeps.
    pub(super) driver: RefCell<Option<Waker>>,
    /// The number of requests sent so far, which gives each its place in their order.
    pub(super) sequence: Cell<u64>,
    /// The runs that were sent behind others and are not released.
    pub(super) behind: Cell<usize>,
    pub(super) state: Cell<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Connecting,
    Open,
    Ended,
}

impl Link {
    pub(super) fn new(pool: Arc<Pool>, worker: Arc<Worker>) -> Self {
        Self {
            pool,
            worker,
            entries: RefCell::default(),
            out: RefCell::default(),
            settlement: RefCell::default(),
            spellings: Spellings::default(),
            driver: RefCell::default(),
            sequence: Cell::new(0),
            behind: Cell::new(0),
            state: Cell::new(State::Connecting),
        }
    }

    /// Sends a request, of which the caller holds a run, and returns its key. `environment` appends
    /// its pairs.
    pub(super) fn send_request(
        &self,
        environment: impl FnOnce(&mut Vec<u8>),
        input: &Input<'_>,
        place: Place,
    ) -> usize {
        self.sequence.set(self.sequence.get() + 1);
        self.behind
            .set(self.behind.get() + usize::from(place.behind.is_some()));
        let entry = Entry::new(self.sequence.get(), place);
        let key = self.entries.borrow_mut().insert(entry);
        let (kind, io): (u8, [u8; 4]);
        let rest: &[u8] = match input {
            Input::Bytes(bytes) => {
                kind = 0;
                bytes
            }
            Input::File(path) => {
                kind = 1;
                path
            }
            Input::Io(token) => {
                kind = 2;
                io = token.to_be_bytes();
                &io
            }
        };
        frame::append(&mut self.out.borrow_mut(), b'R', |out| {
            out.extend_from_slice(&wire_id(key, self.sequence.get()).to_be_bytes());
            out.push(kind);
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            environment(out);
            let length = number(out.len() - start - 4);
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
            out.extend_from_slice(rest);
        });
        self.wake_driver();
        key
    }

    /// Sends a frame that names a request, and perhaps a number.
    pub(super) fn send_note(&self, kind: u8, key: usize, with: Option<u32>) {
        let sequence = self.entries.borrow()[key].sequence;
        self.send_note_of(wire_id(key, sequence), kind, with);
    }

    /// Sends a frame with this id of a request, and perhaps a number.
    pub(super) fn send_note_of(&self, id: u32, kind: u8, with: Option<u32>) {
        if self.state.get() == State::Ended {
            return;
        }
        frame::append(&mut self.out.borrow_mut(), kind, |out| {
            out.extend_from_slice(&id.to_be_bytes());
            if let Some(with) = with {
                out.extend_from_slice(&with.to_be_bytes());
            }
        });
        self.wake_driver();
    }

    fn wake_driver(&self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    pub(super) fn settle(&self) {
        let mut settlement = self.settlement.borrow_mut();
        if !settlement.is_empty() {
            self.pool.settle(self.worker.key, &mut settlement);
        }
    }
}

impl Drop for Link {
    /// Settles all requests of a link whose loop ends. No task waits for them any more, and their
    /// workers must not be waited for.
    fn drop(&mut self) {
        let settlement = self.settlement.get_mut();
        let entries = self.entries.get_mut().iter_mut();
        for (_, entry) in entries.filter(|(_, entry)| !entry.is_over()) {
            entry.lose(Lost::Begun, settlement);
        }
        self.settle();
    }
}

/// The bits of a request's id that are its key; the rest tells it apart from those that had the key
/// before it, in case an application sends a frame for a request that is long over.
const KEY_BITS: u32 = 20;

pub(super) fn wire_id(key: usize, sequence: u64) -> u32 {
    let turn = u32::try_from(sequence % (1 << (u32::BITS - KEY_BITS))).unwrap_or_default();
    (turn << KEY_BITS) | number(key)
}

/// Returns the key in an id.
pub(super) fn key_of(id: u32) -> usize {
    (id & ((1 << KEY_BITS) - 1)) as usize
}

pub(super) fn number(size: usize) -> u32 {
    u32::try_from(size).expect("requests of a link and bytes of a head are fewer than 2^32")
}
