use std::cell::Cell;

use crate::panics::contain;
use crate::reason::Reason;

/// The way back to the asker. Kept, passed on or used at once; dropped unused, the asker gets an
/// error.
#[must_use = "the asker waits for a reply"]
#[derive(Debug)]
pub struct ReplyTo<R>(Option<oneshot::Sender<Result<R, Reason>>>);

pub(crate) type ReplyReceiver<R> = oneshot::AsyncReceiver<Result<R, Reason>>;

impl<R> ReplyTo<R> {
    pub(crate) fn new() -> (Self, ReplyReceiver<R>) {
        let (sender, receiver) = oneshot::async_channel();
        (Self(Some(sender)), receiver)
    }

    /// Creates the `ReplyTo` of a message that nobody asked with.
    pub(crate) const fn nobody() -> Self {
        Self(None)
    }

    /// Sends the reply. Without effect if nobody asked, or if the asker waits no longer.
    pub fn send(mut self, reply: R) {
        if let Some(sender) = self.0.take() {
            contain("a waker of an asker", || drop(sender.send(Ok(reply))));
        }
    }

    /// Returns `true` if somebody still waits for the reply: `false` for a message that was sent by
    /// `tell`, and after the time-out of an `ask`.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    pub(crate) fn forget(mut self) {
        self.0 = None;
    }

    pub(crate) fn refuse(mut self, reason: Reason) {
        self.tell(reason);
    }

    /// Sends an error to the asker, by a waker that is a user's.
    fn tell(&mut self, reason: Reason) {
        if let Some(sender) = self.0.take() {
            contain("a waker of an asker", || drop(sender.send(Err(reason))));
        }
    }
}

impl<R> Drop for ReplyTo<R> {
    fn drop(&mut self) {
        // Dropped by the unwinding of its handler, or with a job that is aborted.
        let reason = if std::thread::panicking() {
            Reason::Failed
        } else if IS_GIVEN_UP.get() {
            Reason::Aborted
        } else {
            return;
        };
        self.tell(reason);
    }
}

thread_local! {
    static IS_GIVEN_UP: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function that drops a waiting handler: its asker gets [`Reason::Aborted`].
pub(crate) fn give_up<T>(drop: impl FnOnce() -> T) -> T {
    let before = IS_GIVEN_UP.replace(true);
    let result = drop();
    IS_GIVEN_UP.set(before);
    result
}
