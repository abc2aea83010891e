use std::num::NonZeroUsize;

/// The default of [`QueueSettings::events_max`], in messages.
pub const EVENTS_MAX: NonZeroUsize = NonZeroUsize::new(1_024).unwrap();

/// The policy of a subscription whose queue is full. Publishers never wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest message is dropped, and the new one is taken: for states, of which the last
    /// counts.
    #[default]
    DropOldest,
    /// The new message is dropped: for a sequence that is only of use as a whole from its
    /// beginning.
    DropNewest,
    /// The subscription ends. Queued events can still be received: for streams in which nothing may
    /// be missing.
    Close,
}

/// The queue of a subscription.
///
/// ```
/// use greenroom_bus::{Bus, Overflow, QueueSettings};
///
/// let bus = Bus::in_process();
/// let settings = QueueSettings::default()
///     .events_max(16.try_into()?)
///     .overflow(Overflow::DropNewest);
/// let mut prices = bus.subscribe_with("/price/*", settings)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct QueueSettings {
    pub(super) events_max: NonZeroUsize,
    pub(super) overflow: Overflow,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            events_max: EVENTS_MAX,
            overflow: Overflow::default(),
        }
    }
}

impl QueueSettings {
    /// Sets the most messages that wait. Default [`EVENTS_MAX`]. A gap between two messages takes
    /// no slot. Memory is taken as messages come: 16 bytes each, and the payload once for all
    /// subscribers.
    #[must_use]
    pub fn events_max(mut self, events_max: NonZeroUsize) -> Self {
        self.events_max = events_max;
        self
    }

    /// Sets the policy for a full queue. Default [`Overflow::DropOldest`].
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }
}
