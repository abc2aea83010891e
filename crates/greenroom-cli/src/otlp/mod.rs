//! Traces: the spans of requests, sent to a collector by OTLP, on a thread of their own.

mod client;
mod exporter;
mod losses;
mod span;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc as blocking;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use greenroom::{FinishedRequest, RequestObserver, ServerBuilder};
use http::Uri;
use tokio::sync::{mpsc, oneshot};

use crate::args::OtlpArgs;
use exporter::Exporter;

/// The time that the spans which wait at the end have to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The queue between the loops and the thread that sends, before that runs.
pub(crate) struct Traces {
    endpoint: Uri,
    service: String,
    observer: Queue,
    waiting: mpsc::Receiver<FinishedRequest>,
}

/// The end of the queue at the loops.
#[derive(Clone, Debug)]
struct Queue {
    sender: mpsc::Sender<FinishedRequest>,
    /// Requests that it had no place for, and of which nobody was told.
    dropped: Arc<AtomicU64>,
}

impl RequestObserver for Queue {
    fn on_end(&self, request: FinishedRequest) {
        if self.sender.try_send(request).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            losses::count("queue_full", 1);
        }
    }
}

impl Traces {
    /// Makes the queue, if spans are to be sent.
    pub(crate) fn new(args: &OtlpArgs) -> Option<Self> {
        let length = usize::try_from(args.otlp_queue_len_max).unwrap_or(usize::MAX);
        let (sender, waiting) = mpsc::channel(length);
        Some(Self {
            endpoint: args.endpoint()?.clone(),
            service: args.otlp_service_name.clone(),
            observer: Queue {
                sender,
                dropped: Arc::default(),
            },
            waiting,
        })
    }

    /// Has the server put requests into the queue.
    pub(crate) fn observe(&self, args: &OtlpArgs, builder: ServerBuilder) -> ServerBuilder {
        builder.trace_requests(args.one_of(), self.observer.clone())
    }

    /// Starts the thread that sends.
    pub(crate) fn start(self) -> anyhow::Result<Sending> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start a runtime for traces")?;
        let exporter = {
            let _within = runtime.enter();
            Exporter::new(&self.endpoint, &self.service)
        };
        let exporter = exporter.context("--otlp-endpoint")?;
        let (ending, ended) = oneshot::channel();
        let (tell, done) = blocking::channel();
        let dropped = self.observer.dropped;
        let run = move || {
            runtime.block_on(exporter.run(self.waiting, dropped, ended));
            // Nobody waits if the time for it is over.
            let _told = tell.send(());
        };
        thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(run)
            .context("cannot start a thread for traces")?;
        tracing::info!(endpoint = %self.endpoint, "spans are sent");
        Ok(Sending { ending, done })
    }
}

/// The thread that sends.
pub(crate) struct Sending {
    ending: oneshot::Sender<()>,
    done: blocking::Receiver<()>,
}

impl Sending {
    /// Waits until the spans in the queue are sent, or their time is over.
    pub(crate) fn finish(self) {
        // One that has panicked is done.
        let _told = self.ending.send(());
        if self.done.recv_timeout(FLUSH_TIMEOUT).is_err() {
            tracing::warn!(
                after = ?FLUSH_TIMEOUT,
                "the collector took too long; the last spans are lost"
            );
        }
    }
}
