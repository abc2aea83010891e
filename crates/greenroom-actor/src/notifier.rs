//! Notification of waiting tasks, which wakes them where no lock is held.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use event_listener::{Event, EventListener};
use futures_util::task::{ArcWake, waker};

use crate::panics::contain;

/// An [`Event`], which wakes its listeners, and drops their wakers, under a lock of its own: here
/// both are put off until that is released. A waker is a user's: it may listen in turn, or panic,
/// which would keep the event from waking the others.
pub(crate) struct Notifier(Event);

/// A future that is ready when it is notified. It listens from when it is made.
pub(crate) struct Listener(Option<EventListener>);

impl Notifier {
    pub(crate) const fn new() -> Self {
        Self(Event::new())
    }

    pub(crate) fn listen(&self) -> Listener {
        Listener(Some(self.0.listen()))
    }

    /// Wakes this many listeners, the oldest first; those that were woken and have not been polled
    /// since count.
    pub(crate) fn notify(&self, listeners: usize) {
        let _put_off = PutOff::begin();
        self.0.notify(listeners);
    }

    /// Wakes this many listeners more.
    #[cfg(feature = "web")]
    pub(crate) fn notify_additional(&self, listeners: usize) {
        let _put_off = PutOff::begin();
        self.0.notify_additional(listeners);
    }
}

impl Future for Listener {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(listener) = &mut self.0 else {
            return Poll::Ready(());
        };
        let waker = waker(Arc::new(Deferred(Some(cx.waker().clone()))));
        let _put_off = PutOff::begin();
        Pin::new(listener).poll(&mut Context::from_waker(&waker))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _put_off = PutOff::begin();
        self.0 = None;
    }
}

/// A user's waker, wrapped for the event. `None` once it is dropped.
struct Deferred(Option<Waker>);

impl ArcWake for Deferred {
    fn wake_by_ref(waker: &Arc<Self>) {
        Due::Wake(Arc::clone(waker)).later();
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            Due::Drop(waker).later();
        }
    }
}

/// An action on a waker that was put off.
enum Due {
    Wake(Arc<Deferred>),
    Drop(Waker),
}

thread_local! {
    /// The actions that were put off, while this thread is within an event.
    static PUT_OFF: RefCell<Option<Vec<Due>>> = const { RefCell::new(None) };
}

impl Due {
    /// Runs the action when the thread has left the event: at once if it is in none, or ends.
    fn later(self) {
        let mut due = Some(self);
        let _ = PUT_OFF.try_with(|put_off| {
            if let Some(put_off) = &mut *put_off.borrow_mut() {
                put_off.extend(due.take());
            }
        });
        if let Some(due) = due {
            due.now();
        }
    }

    fn now(self) {
        contain("a waker of who waits for room or an end", || match self {
            Self::Wake(deferred) => deferred.0.iter().for_each(Waker::wake_by_ref),
            Self::Drop(waker) => drop(waker),
        });
    }
}

/// A guard that puts actions off until it is dropped, after the lock of the event.
struct PutOff;

impl PutOff {
    fn begin() -> Self {
        let _ = PUT_OFF.try_with(|put_off| {
            put_off.borrow_mut().get_or_insert_default();
        });
        Self
    }
}

impl Drop for PutOff {
    fn drop(&mut self) {
        let due = PUT_OFF.try_with(|put_off| put_off.borrow_mut().take());
        due.ok().flatten().into_iter().flatten().for_each(Due::now);
    }
}
