use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch;

use crate::drain::Phase;

/// The notice that the server drains: a future that completes when it begins to, at once if it has.
///
/// It may be kept, cloned, sent to other threads and awaited for as long as one likes.
pub struct Draining {
    told: watch::Receiver<Phase>,
    /// There once somebody waits.
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl Draining {
    pub(crate) fn new(told: watch::Receiver<Phase>) -> Self {
        Self {
            told,
            waiting: None,
        }
    }

    /// Returns `true` if the server drains, or has ended.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        // A loop that has ended tells nobody any more.
        *self.told.borrow() != Phase::Serving || self.told.has_changed().is_err()
    }
}

async fn drained(mut told: watch::Receiver<Phase>) {
    // An error means that the loop has ended.
    let _phase = told.wait_for(|phase| *phase != Phase::Serving).await;
}

impl Future for Draining {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_draining() {
            return Poll::Ready(());
        }
        let Self { told, waiting } = &mut *self;
        let waiting = waiting.get_or_insert_with(|| Box::pin(drained(told.clone())));
        waiting.as_mut().poll(cx)
    }
}

impl Clone for Draining {
    fn clone(&self) -> Self {
        Self::new(self.told.clone())
    }
}

impl fmt::Debug for Draining {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Draining")
            .field("is_draining", &self.is_draining())
            .finish()
    }
}
