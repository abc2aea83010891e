use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::table::{Member, Place};
use crate::{Message, Pattern};

use super::offer::Offer;
use super::queue::{Queue, Taken};
use super::sink::{Outlet, Sink};
use super::{End, EstablishError, QueueSettings};

/// The bus' side of a subscription.
pub(crate) struct Receiver {
    pattern: Pattern,
    place: Place,
    phase: Mutex<Phase>,
    phase_changed: Notify,
    end: Destination,
}

enum Destination {
    Queue(Queue),
    Outlet(Outlet),
}

enum Phase {
    Pending,
    Established,
    Refused(Arc<str>),
}

impl Receiver {
    pub(crate) fn queue(pattern: Pattern, settings: QueueSettings) -> Self {
        Self::new(pattern, Destination::Queue(Queue::new(settings)))
    }

    pub(crate) fn sink(pattern: Pattern, sink: impl Sink) -> Self {
        Self::new(pattern, Destination::Outlet(Outlet::new(sink)))
    }

    fn new(pattern: Pattern, end: Destination) -> Self {
        Self {
            pattern,
            place: Place::default(),
            phase: Mutex::new(Phase::Pending),
            phase_changed: Notify::new(),
            end,
        }
    }

    pub(crate) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    pub(crate) fn offer(&self, message: &Message) -> Offer {
        match &self.end {
            Destination::Queue(queue) => queue.offer(message),
            Destination::Outlet(outlet) => outlet.offer(message),
        }
    }

    /// Marks the subscription as active: from now on it gets every message.
    pub(crate) fn establish(&self) {
        *self.phase.lock() = Phase::Established;
        self.phase_changed.notify_waiters();
    }

    /// Notes that the server has confirmed its topic on a new connection. Returns `true` if that
    /// left a gap, which the subscriber must get before any other event.
    pub(crate) fn confirm(&self) -> bool {
        let before = std::mem::replace(&mut *self.phase.lock(), Phase::Established);
        self.phase_changed.notify_waiters();
        matches!(before, Phase::Established)
    }

    pub(crate) fn is_established(&self) -> bool {
        matches!(*self.phase.lock(), Phase::Established)
    }

    pub(crate) fn notify_reconnected(&self) {
        match &self.end {
            Destination::Queue(queue) => queue.reconnected(),
            Destination::Outlet(outlet) => outlet.reconnected(),
        }
    }

    /// Notes a rejection. A subscription that had been established stays so: it is owed a gap when
    /// it is active again.
    pub(crate) fn refuse(&self, reason: &Arc<str>) {
        let mut phase = self.phase.lock();
        if !matches!(*phase, Phase::Established) {
            *phase = Phase::Refused(Arc::clone(reason));
        }
        drop(phase);
        self.phase_changed.notify_waiters();
    }

    pub(crate) fn end(&self, end: End) {
        match &self.end {
            Destination::Queue(queue) => queue.end(end),
            Destination::Outlet(outlet) => outlet.end(end),
        }
        self.phase_changed.notify_waiters();
    }

    pub(crate) fn ended(&self) -> Option<End> {
        match &self.end {
            Destination::Queue(queue) => queue.ended(),
            Destination::Outlet(outlet) => outlet.ended(),
        }
    }

    pub(super) async fn established(&self) -> Result<(), EstablishError> {
        loop {
            let mut changed = std::pin::pin!(self.phase_changed.notified());
            // Enabled before the look, so that a change between the look and the wait is not
            // missed.
            changed.as_mut().enable();
            if self.ended().is_some() {
                return Err(EstablishError::Ended);
            }
            match &*self.phase.lock() {
                Phase::Established => return Ok(()),
                Phase::Refused(reason) => {
                    let reason = Arc::clone(reason);
                    return Err(EstablishError::Refused { reason });
                }
                Phase::Pending => {}
            }
            changed.await;
        }
    }

    /// Takes the next event. If there is none now, `reader` is woken by the next. A sink has
    /// nothing to take.
    pub(super) fn take(&self, reader: &Waker) -> Taken {
        match &self.end {
            Destination::Queue(queue) => queue.take(reader),
            Destination::Outlet(_) => Taken::End,
        }
    }

    pub(super) fn try_take(&self) -> Taken {
        match &self.end {
            Destination::Queue(queue) => queue.try_take(),
            Destination::Outlet(_) => Taken::End,
        }
    }

    /// Frees the events that nobody will take any more.
    pub(super) fn discard(&self) {
        if let Destination::Queue(queue) = &self.end {
            queue.discard();
        }
    }
}

impl Member for Receiver {
    fn place(&self) -> &Place {
        &self.place
    }
}
