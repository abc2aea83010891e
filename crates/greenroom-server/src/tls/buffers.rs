use std::cell::RefCell;

use super::session::{PLAIN_BYTES_MAX, RECORD_OVERHEAD_BYTES_MAX};

/// Room for input: the longest handshake message that rustls takes, of 64 KiB, in as many records
/// as it is ever sent in.
pub(super) const INPUT_BYTES_MAX: usize = 80 * 1_024;
/// Room for what goes out in one go: its records, and the tickets or the like that go before them.
const OUTPUT_BYTES_MAX: usize = PLAIN_BYTES_MAX + 8 * RECORD_OVERHEAD_BYTES_MAX;

/// The buffers of a thread for ciphertext, used by the stream that is polled. An idle stream owns
/// none.
pub(super) struct Buffers {
    pub(super) input: Box<[u8]>,
    pub(super) output: Box<[u8]>,
    /// Content that is to become one record and lies in several places.
    pub(super) gathered: Vec<u8>,
}

impl Buffers {
    fn new() -> Self {
        Self {
            input: vec![0; INPUT_BYTES_MAX].into_boxed_slice(),
            output: vec![0; OUTPUT_BYTES_MAX].into_boxed_slice(),
            gathered: Vec::with_capacity(PLAIN_BYTES_MAX),
        }
    }
}

/// Runs `act` with the buffers of this thread. Streams do not call one another.
pub(super) fn with_buffers<T>(act: impl FnOnce(&mut Buffers) -> T) -> T {
    thread_local! {
        static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers::new());
    }
    BUFFERS.with_borrow_mut(act)
}
