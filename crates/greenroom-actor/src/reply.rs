use std::cell::Cell;

use crate::dead_letter::Reason;
use crate::panics::contain;

/// The way back to who asked. Kept, passed on or used at once; dropped unused, it tells who asked
/// that there will be no answer.
#[must_use = "who asked waits for an answer"]
#[derive(Debug)]
pub struct ReplyTo<R>(Option<oneshot::Sender<Result<R, Reason>>>);

pub(crate) type Answer<R> = oneshot::AsyncReceiver<Result<R, Reason>>;

impl<R> ReplyTo<R> {
    pub(crate) fn new() -> (Self, Answer<R>) {
        let (sender, receiver) = oneshot::async_channel();
        (Self(Some(sender)), receiver)
    }

    /// For a message that was told, not asked.
    pub(crate) const fn nobody() -> Self {
        Self(None)
    }

    /// Answers. Without effect if nobody asked, or if who asked waits no longer.
    pub fn send(mut self, reply: R) {
        if let Some(sender) = self.0.take() {
            contain("a waker of who asked", || drop(sender.send(Ok(reply))));
        }
    }

    /// Whether somebody still waits for the answer: false for a message that was told, and after
    /// the time-out of one that was asked.
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

    /// Wakes who asked, by a waker that is a user's.
    fn tell(&mut self, reason: Reason) {
        if let Some(sender) = self.0.take() {
            contain("a waker of who asked", || drop(sender.send(Err(reason))));
        }
    }
}

impl<R> Drop for ReplyTo<R> {
    fn drop(&mut self) {
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

/// Calls a function that drops a handler which waits: who asked is told that it was given up.
pub(crate) fn give_up<T>(drop: impl FnOnce() -> T) -> T {
    let before = IS_GIVEN_UP.replace(true);
    let result = drop();
    IS_GIVEN_UP.set(before);
    result
}
