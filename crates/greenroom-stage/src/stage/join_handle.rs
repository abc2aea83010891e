use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_task::FallibleTask;

use super::Stage;
use super::error::{Error, Rejected};
use super::outcome::Outcome;
use super::ticket::Ticket;

/// The result of work on a stage, to be awaited.
///
/// Dropping it gives the work up: what waits in the queue is never begun, what runs ends at its
/// next await. A blocking function that has begun runs to its end, for nothing can stop it.
#[must_use = "work whose result is dropped is given up"]
pub struct JoinHandle<T>(State<T>);

enum State<T> {
    Refused(Rejected),
    Admitted(Admitted<T>),
    Ended,
}

struct Admitted<T> {
    task: FallibleTask<Outcome<T>, Arc<Ticket>>,
    ticket: Arc<Ticket>,
    stage: Stage,
}

impl<T> JoinHandle<T> {
    pub(super) fn of_rejected(rejected: Rejected) -> Self {
        Self(State::Refused(rejected))
    }

    pub(super) fn admitted(
        task: FallibleTask<Outcome<T>, Arc<Ticket>>,
        ticket: Arc<Ticket>,
        stage: Stage,
    ) -> Self {
        Self(State::Admitted(Admitted {
            task,
            ticket,
            stage,
        }))
    }

    /// Returns the rejection, if the stage did not admit the work. Known at once, before any await.
    #[must_use]
    pub fn rejected(&self) -> Option<Rejected> {
        match self.0 {
            State::Refused(rejected) => Some(rejected),
            _ => None,
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Error>;

    /// # Panics
    ///
    /// If polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = match &mut self.0 {
            State::Refused(rejected) => Err((*rejected).into()),
            State::Admitted(admitted) => match ready!(Pin::new(&mut admitted.task).poll(cx)) {
                Some(outcome) => outcome.take().map_err(Error::Panicked),
                None => Err(admitted.stage.shared().rejected_late().into()),
            },
            State::Ended => panic!("polled after it was ready"),
        };
        self.0 = State::Ended;
        Poll::Ready(result)
    }
}

impl<T> Unpin for JoinHandle<T> {}

impl<T> Drop for Admitted<T> {
    fn drop(&mut self) {
        if !self.task.is_finished() {
            self.stage.shared().abandon(&self.ticket);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.0 {
            State::Refused(_) => "Refused",
            State::Admitted(_) => "Admitted",
            State::Ended => "Ended",
        };
        f.debug_tuple("JoinHandle").field(&state).finish()
    }
}
