/// A connection may keep this much unread input while it waits, or a whole head if that is more.
const KEPT_BYTES_MIN: usize = 64 * 1_024;
/// Less room than this, and what is unread moves to the front.
const ROOM_MIN: usize = 16 * 1_024;
/// Output is sent when it has grown to this, or when there is nothing more to do.
pub(super) const OUTPUT_BYTES_FULL: usize = 64 * 1_024;
/// A buffer that a large head made grow beyond this is given back.
const OUTPUT_BYTES_KEPT: usize = 4 * OUTPUT_BYTES_FULL;

/// The buffers of a loop, used by the connection that runs. Pages that no connection ever filled
/// cost nothing.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Room for what a connection kept and as much again.
    input: Box<[u8]>,
    start: usize,
    end: usize,
    pub(super) out: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new(head_bytes_max: usize) -> Self {
        let kept_max = head_bytes_max.max(KEPT_BYTES_MIN);
        Self {
            input: vec![0; 2 * kept_max].into_boxed_slice(),
            start: 0,
            end: 0,
            out: Vec::with_capacity(OUTPUT_BYTES_FULL),
        }
    }

    /// Returns `true` if as much is unread as a connection may keep.
    pub(super) fn is_full(&self) -> bool {
        self.unread().len() >= self.input.len() / 2
    }

    /// Begins a connection's turn with the input that it kept.
    pub(super) fn load(&mut self, kept: &mut Box<[u8]>) {
        self.start = 0;
        self.end = kept.len();
        if !kept.is_empty() {
            self.input[..kept.len()].copy_from_slice(kept);
            *kept = Box::default();
        }
    }

    /// Ends a connection's turn: what is unread is its own again.
    pub(super) fn save(&mut self, kept: &mut Box<[u8]>) {
        if self.start < self.end {
            *kept = self.unread().into();
        }
        self.start = 0;
        self.end = 0;
        self.out.clear();
        if self.out.capacity() > OUTPUT_BYTES_KEPT {
            self.out = Vec::with_capacity(OUTPUT_BYTES_FULL);
        }
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Returns the room for more input, at most so many bytes; never empty unless
    /// [`is_full`](Self::is_full).
    pub(super) fn room_for(&mut self, bytes: usize) -> &mut [u8] {
        let room = self.room();
        let bytes = bytes.min(room.len());
        &mut room[..bytes]
    }

    fn room(&mut self) -> &mut [u8] {
        if self.input.len() - self.end < ROOM_MIN {
            self.input.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.input[self.end..]
    }

    pub(super) fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }
}
