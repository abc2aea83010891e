//! The budget of a worker before it lets the runtime look at sockets and timers.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// A worker that has run actors for this long yields to its runtime.
const RUN_MAX: Duration = Duration::from_micros(500);
/// Messages after which it yields in any case, such as under a clock that stands still.
const MESSAGES_MAX: u32 = 16_384;
/// Messages after which the clock is read, if they are short.
const STRIDE_MAX: u32 = 64;

/// The time that a worker has run in one go. Reading a clock costs about as much as a short
/// message, so it is read once in a stride, which is shorter the longer messages take.
pub(crate) struct Pace {
    has_begun: Cell<bool>,
    begin: Cell<Instant>,
    looked: Cell<Instant>,
    stride: Cell<u32>,
    left_of_stride: Cell<u32>,
    left: Cell<u32>,
    is_spent: Cell<bool>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            has_begun: Cell::new(true),
            begin: Cell::new(now),
            looked: Cell::new(now),
            stride: Cell::new(1),
            left_of_stride: Cell::new(1),
            left: Cell::new(MESSAGES_MAX),
            is_spent: Cell::new(false),
        }
    }

    /// Begins a run, now if the time is given. Without it the run is likely to be a short one, and
    /// begins with the first look at the clock, if it gets there.
    pub(super) fn restart(&self, now: Option<Instant>) {
        self.has_begun.set(now.is_some());
        if let Some(now) = now {
            self.begin.set(now);
            self.looked.set(now);
        }
        self.left_of_stride.set(self.stride.get());
        self.left.set(MESSAGES_MAX);
        self.is_spent.set(false);
    }

    /// Counts a message.
    pub(crate) fn count(&self) {
        let left = self.left_of_stride.get() - 1;
        self.left_of_stride.set(left);
        if left == 0 {
            self.look();
        }
    }

    /// Returns `true` if it is time to yield.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    /// Returns the length of the run that is spent.
    pub(super) fn ran(&self) -> Duration {
        self.looked.get() - self.begin.get()
    }

    fn look(&self) {
        let now = Instant::now();
        let stride = self.stride.get();
        let left = self.left.get().saturating_sub(stride);
        self.left.set(left);
        if !self.has_begun.replace(true) {
            self.begin.set(now);
            self.looked.set(now);
            self.left_of_stride.set(stride);
            return;
        }
        let took = now - self.looked.replace(now);
        // A stride is to take at most an eighth of the run.
        let next = if took > RUN_MAX / 8 {
            stride / 2
        } else {
            stride * 2
        };
        self.stride.set(next.clamp(1, STRIDE_MAX));
        self.left_of_stride.set(self.stride.get());
        self.is_spent
            .set(left == 0 || now - self.begin.get() > RUN_MAX);
    }
}
