use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use tokio::task::coop;

use crate::core::Core;
use crate::{Event, Pattern};

use super::queue::Taken;
use super::{End, EstablishError, Receiver};

/// A bounded queue of the events of one topic or pattern, from
/// [`Bus::subscribe`](crate::Bus::subscribe). It is a [`Stream`] too. Dropping it unsubscribes.
///
/// Events come in the order in which each publisher published them. The subscription does not keep
/// the bus alive: once the last [`Bus`](crate::Bus) is dropped it gives what it has queued, and
/// ends.
pub struct Subscription(Membership);

/// A subscription that delivers to a [`Sink`](crate::Sink), from
/// [`Bus::subscribe_sink`](crate::Bus::subscribe_sink). Dropping it unsubscribes.
#[must_use = "dropping it unsubscribes; `detach` keeps it until the sink is closed"]
pub struct SinkSubscription(Membership);

/// An entry in the table, removed when dropped.
struct Membership {
    core: Arc<Core>,
    receiver: Arc<Receiver>,
    is_detached: bool,
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.is_detached {
            return;
        }
        self.core.leave(&self.receiver);
        self.receiver.discard();
    }
}

impl Subscription {
    pub(crate) fn new(core: Arc<Core>, receiver: Arc<Receiver>) -> Self {
        Self(Membership {
            core,
            receiver,
            is_detached: false,
        })
    }

    /// Receives the next event; `None` once the subscription has ended and all is received. Cancel
    /// safe.
    pub async fn recv(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// Returns the next event, if there is one now.
    pub fn try_recv(&mut self) -> Option<Event> {
        match self.0.receiver.try_take() {
            Taken::Event(event) => Some(event),
            Taken::Nothing | Taken::End => None,
        }
    }

    /// Polls for the next event, as [`recv`](Self::recv) does, for hand-written futures. Takes part
    /// in tokio's budget, so that a stream that never runs dry does not starve the other tasks of
    /// its thread.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let budget = ready!(coop::poll_proceed(context));
        let polled = match self.0.receiver.take(context.waker()) {
            Taken::Nothing => return Poll::Pending,
            Taken::Event(event) => Some(event),
            Taken::End => None,
        };
        budget.made_progress();
        Poll::Ready(polled)
    }

    /// Waits until the subscription is active at the server: from then on every message that the
    /// server takes comes here, or a gap in its place. In-process it is active from the beginning.
    /// While the server is away this waits; put a time-out around it.
    ///
    /// # Errors
    /// The server refused the subscription, or it has ended.
    pub async fn established(&self) -> Result<(), EstablishError> {
        self.0.receiver.established().await
    }

    /// Returns the reason for which the subscription has ended, if it has. There may be events left
    /// to receive.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.0.receiver.ended()
    }

    /// Returns the topic or pattern of the subscription.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        self.0.receiver.pattern()
    }
}

impl SinkSubscription {
    pub(crate) fn new(core: Arc<Core>, receiver: Arc<Receiver>) -> Self {
        Self(Membership {
            core,
            receiver,
            is_detached: false,
        })
    }

    /// Keeps the subscription until its sink returns
    /// [`SinkError::Closed`](crate::SinkError::Closed) or the bus is dropped. The sink is asked
    /// with an event only: that of a topic which has fallen silent stays although its receiver is
    /// gone. For such topics keep this value beside the receiver instead.
    pub fn detach(mut self) {
        self.0.is_detached = true;
    }

    /// Waits until the subscription is active, as [`Subscription::established`] does.
    ///
    /// # Errors
    /// The server refused the subscription, or it has ended.
    pub async fn established(&self) -> Result<(), EstablishError> {
        self.0.receiver.established().await
    }

    /// Returns the reason for which the subscription has ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.0.receiver.ended()
    }

    /// Returns the topic or pattern of the subscription.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        self.0.receiver.pattern()
    }
}

impl Stream for Subscription {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_recv(context)
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Subscription")
            .field(self.pattern())
            .finish()
    }
}

impl fmt::Debug for SinkSubscription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("SinkSubscription")
            .field(self.pattern())
            .finish()
    }
}
