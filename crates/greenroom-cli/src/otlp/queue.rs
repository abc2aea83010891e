//! The queue between those who serve and the thread that sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::{FinishedRequest, FinishedSpan, RequestObserver};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::losses;
use super::span::count;

/// Something whose spans are to be sent.
#[derive(Debug)]
pub(super) enum Finished {
    Request(Box<FinishedRequest>),
    Below(Box<FinishedSpan>),
}

impl Finished {
    /// Returns the number of its spans.
    fn spans(&self) -> u64 {
        match self {
            Self::Request(request) => count(request),
            Self::Below(_) => 1,
        }
    }
}

/// The end of the queue at those who serve.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<Finished>,
    /// Spans that it had no place for, and of which nobody was told.
    dropped: Arc<AtomicU64>,
}

impl Queue {
    pub(super) fn new(length: usize) -> (Self, mpsc::Receiver<Finished>) {
        let (sender, waiting) = mpsc::channel(length);
        let dropped = Arc::default();
        (Self { sender, dropped }, waiting)
    }

    /// Returns the count of what it had no place for, and lets go of the queue.
    pub(super) fn into_dropped(self) -> Arc<AtomicU64> {
        self.dropped
    }

    fn put(&self, finished: Finished) {
        // It is closed at the end only.
        if let Err(TrySendError::Full(finished) | TrySendError::Closed(finished)) =
            self.sender.try_send(finished)
        {
            let spans = finished.spans();
            self.dropped.fetch_add(spans, Ordering::Relaxed);
            losses::count("queue_full", spans);
        }
    }
}

impl RequestObserver for Queue {
    fn on_end(&self, request: FinishedRequest) {
        self.put(Finished::Request(Box::new(request)));
    }

    fn on_span(&self, span: FinishedSpan) {
        self.put(Finished::Below(Box::new(span)));
    }

    fn on_span_omitted(&self) {
        losses::count("trace_full", 1);
    }
}
