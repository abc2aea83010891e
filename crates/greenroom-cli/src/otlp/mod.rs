//! Traces: the spans of requests, sent to a collector by OTLP, on a thread of their own.

mod below;
mod client;
mod exporter;
mod losses;
mod queue;
mod span;

use std::sync::mpsc as blocking;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use greenroom::ServerBuilder;
use http::Uri;
use tokio::sync::{mpsc, oneshot};

use crate::args::OtlpArgs;
use client::CollectorClient;
use exporter::Exporter;
use queue::{Finished, Queue};

/// The time that the spans which wait at the end have to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The queue between the loops and the thread that sends, before that runs.
pub(crate) struct Traces {
    endpoint: Uri,
    service: String,
    observer: Queue,
    waiting: mpsc::Receiver<Finished>,
    client: CollectorClient,
}

impl Traces {
    /// Makes the queue, if spans are to be sent. Reads the certificates, which need not be readable
    /// for the user to serve as.
    pub(crate) fn new(args: &OtlpArgs) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = args.endpoint()? else {
            return Ok(None);
        };
        let client = CollectorClient::new(endpoint, &args.tls);
        let length = usize::try_from(args.otlp_queue_len_max).unwrap_or(usize::MAX);
        let (observer, waiting) = Queue::new(length);
        Ok(Some(Self {
            endpoint: endpoint.clone(),
            service: args.otlp_service_name.clone(),
            observer,
            waiting,
            client: client.context("spans cannot be sent")?,
        }))
    }

    /// Has the server put requests into the queue.
    pub(crate) fn observe(&self, args: &OtlpArgs, builder: ServerBuilder) -> ServerBuilder {
        builder
            .trace_requests(args.one_of(), self.observer.clone())
            .trace_parents(args.otlp_parents.into())
    }

    /// Starts the thread that sends.
    pub(crate) fn start(self) -> anyhow::Result<Sending> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start a runtime for traces")?;
        let exporter = {
            let _within = runtime.enter();
            Exporter::new(self.client, &self.endpoint, &self.service)
        };
        let exporter = exporter.context("--otlp-endpoint")?;
        let (ending, ended) = oneshot::channel();
        let (tell, done) = blocking::channel();
        let dropped = self.observer.into_dropped();
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
