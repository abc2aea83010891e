/// The outcome of a message that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Taken,
    /// Taken, and an older one was dropped for it.
    DroppedOldest,
    /// Dropped.
    DroppedNewest,
    /// The subscription has ended.
    Gone,
}
