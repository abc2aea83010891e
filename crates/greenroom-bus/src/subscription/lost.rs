use crate::{Event, GapCause};

/// The messages missing at one place of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) missed: u64,
    pub(super) reconnected: bool,
}

impl Lost {
    pub(super) const ONE: Self = Self {
        missed: 1,
        reconnected: false,
    };

    pub(super) const RECONNECTED: Self = Self {
        missed: 0,
        reconnected: true,
    };

    pub(super) fn add(&mut self, other: Self) {
        self.missed += other.missed;
        self.reconnected |= other.reconnected;
    }

    /// Takes the next gap to deliver. Gaps of both causes at one place are delivered one after the
    /// other.
    pub(super) fn take(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.reconnected) {
            return Some(Event::Gap {
                missed: None,
                cause: GapCause::Reconnected,
            });
        }
        let missed = std::mem::take(&mut self.missed);
        (missed > 0).then_some(Event::Gap {
            missed: Some(missed),
            cause: GapCause::Overflow,
        })
    }
}
