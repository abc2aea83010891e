use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::{Event, Message};

use super::End;
use super::lost::Lost;
use super::offer::Offer;

/// A receiver of events that the bus calls, instead of a queue that a task reads: the mailbox of an
/// actor, or an existing channel.
///
/// A closure `Fn(Event) -> Result<(), SinkError>` is a sink:
///
/// ```
/// use greenroom_bus::{Bus, SinkError};
/// use tokio::sync::mpsc::{self, error::TrySendError};
///
/// let bus = Bus::in_process();
/// let (sender, mut receiver) = mpsc::channel(64);
/// bus.subscribe_sink("/picture/*/likes", move |event| {
///     sender.try_send(event).map_err(|error| match error {
///         TrySendError::Full(_) => SinkError::Full,
///         TrySendError::Closed(_) => SinkError::Closed,
///     })
/// })?
/// .detach(); // until the channel is closed
/// # Ok::<(), greenroom_bus::SubscribeError>(())
/// ```
pub trait Sink: Send + Sync + 'static {
    /// Takes the event, or refuses it at once. It runs on the thread of the publisher, or on the
    /// bus' own with a server, so it must not block. It may publish and subscribe, but must not
    /// publish to its own topic in response to an [`Event::Gap`].
    ///
    /// # Errors
    /// [`SinkError::Full`]: the event is dropped, counted, and reported in an [`Event::Gap`] before
    /// the next event. [`SinkError::Closed`]: the subscription ends. A panic counts as closed; that
    /// of the sink's destructor is logged.
    fn deliver(&self, event: Event) -> Result<(), SinkError>;
}

/// The reason for which a [`Sink`] did not take an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The sink cannot take it now.
    #[error("the sink is full")]
    Full,
    /// The sink takes no more events.
    #[error("the sink is closed")]
    Closed,
}

impl<F> Sink for F
where
    F: Fn(Event) -> Result<(), SinkError> + Send + Sync + 'static,
{
    fn deliver(&self, event: Event) -> Result<(), SinkError> {
        self(event)
    }
}

/// An actor that has a handler for [`Event`]. When its mailbox is full, the event is dropped and
/// reported in a gap; when it has ended, so does the subscription. The actor's own
/// [overflow](greenroom_actor::Overflow) must not drop, or it would miss events without a gap.
#[cfg(feature = "actor")]
impl Sink for greenroom_actor::Recipient<Event> {
    fn deliver(&self, event: Event) -> Result<(), SinkError> {
        self.tell(event).map_err(|error| {
            if error.is_full() {
                SinkError::Full
            } else {
                SinkError::Closed
            }
        })
    }
}

/// A sink and the events that it has missed.
pub(super) struct Outlet {
    sink: Foreign,
    end: OnceLock<End>,
    /// `true` while `lost` holds something: spares the lock while the sink keeps up.
    is_behind: AtomicBool,
    lost: Mutex<Lost>,
}

impl Outlet {
    pub(super) fn new(sink: impl Sink) -> Self {
        Self {
            sink: Foreign(Some(Box::new(sink))),
            end: OnceLock::new(),
            is_behind: AtomicBool::new(false),
            lost: Mutex::default(),
        }
    }

    pub(super) fn offer(&self, message: &Message) -> Offer {
        if self.ended().is_some() {
            return Offer::Gone;
        }
        let caught_up = self.deliver_gaps();
        match caught_up.and_then(|()| self.call(Event::Message(message.clone()))) {
            Ok(()) => Offer::Taken,
            Err(SinkError::Full) => {
                self.lose(Lost::ONE);
                Offer::DroppedNewest
            }
            Err(SinkError::Closed) => {
                self.end(End::SinkClosed);
                Offer::Gone
            }
        }
    }

    pub(super) fn reconnected(&self) {
        if self.ended().is_some() {
            return;
        }
        self.lose(Lost::RECONNECTED);
        if self.deliver_gaps() == Err(SinkError::Closed) {
            self.end(End::SinkClosed);
        }
    }

    /// Calls the sink no more. The first reason counts.
    pub(super) fn end(&self, end: End) {
        self.end.get_or_init(|| end);
    }

    pub(super) fn ended(&self) -> Option<End> {
        self.end.get().copied()
    }

    fn lose(&self, lost: Lost) {
        let mut all = self.lost.lock();
        all.add(lost);
        self.is_behind.store(true, Ordering::Release);
    }

    /// Delivers the gaps due. Holds the lock, so that no message overtakes the gap before it.
    fn deliver_gaps(&self) -> Result<(), SinkError> {
        if !self.is_behind.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut lost = self.lost.lock();
        loop {
            let before = *lost;
            let Some(gap) = lost.take() else {
                self.is_behind.store(false, Ordering::Release);
                return Ok(());
            };
            self.call(gap).inspect_err(|_| *lost = before)?;
        }
    }

    fn call(&self, event: Event) -> Result<(), SinkError> {
        self.sink.deliver(event).unwrap_or_else(|_| {
            tracing::error!("a sink panicked; its subscription ends");
            Err(SinkError::Closed)
        })
    }
}

/// A sink, which is foreign code on the thread of a publisher, or of the connection: both survive
/// its panics, also that of its destructor. It is there until it is dropped.
struct Foreign(Option<Box<dyn Sink>>);

impl Foreign {
    fn deliver(&self, event: Event) -> thread::Result<Result<(), SinkError>> {
        catch_unwind(AssertUnwindSafe(|| match &self.0 {
            Some(sink) => sink.deliver(event),
            None => Err(SinkError::Closed),
        }))
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let sink = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(sink))).is_err() {
            tracing::error!("a sink panicked when it was dropped");
        }
    }
}
