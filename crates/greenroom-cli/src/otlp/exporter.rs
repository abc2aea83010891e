//! The thread that sends spans, in batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Uri;
use opentelemetry::InstrumentationScope;
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::below;
use super::client::CollectorClient;
use super::losses::{self, Losses};
use super::queue::Finished;
use super::span::spans;

/// Requests, and spans below them, that are sent at once, at most.
const BATCH_LEN_MAX: usize = 512;
/// The time for which one waits for others to be sent with.
const BATCH_DELAY: Duration = Duration::from_secs(1);

pub(super) struct Exporter {
    spans: SpanExporter,
    client: CollectorClient,
    scope: InstrumentationScope,
    losses: Losses,
}

impl Exporter {
    pub(super) fn new(
        client: CollectorClient,
        endpoint: &Uri,
        service: &str,
    ) -> anyhow::Result<Self> {
        let mut spans = SpanExporter::builder()
            .with_http()
            .with_http_client(client.clone())
            .with_endpoint(endpoint.to_string())
            // A batch that waits for a collector makes the queue drop others.
            .with_retry_policy(RetryPolicy::disabled())
            .build()?;
        // OTEL_RESOURCE_ATTRIBUTES are among its attributes.
        let resource = Resource::builder().with_service_name(service.to_owned());
        spans.set_resource(&resource.build());
        let scope = InstrumentationScope::builder("greenroom");
        Ok(Self {
            spans,
            client,
            scope: scope.with_version(env!("CARGO_PKG_VERSION")).build(),
            losses: Losses::default(),
        })
    }

    /// Sends what comes; once `ended` completes, what is there.
    pub(super) async fn run(
        mut self,
        mut waiting: mpsc::Receiver<Finished>,
        dropped: Arc<AtomicU64>,
        mut ended: oneshot::Receiver<()>,
    ) {
        let mut batch = Vec::with_capacity(BATCH_LEN_MAX);
        loop {
            tokio::select! {
                () = gather(&mut waiting, &mut batch) => {}
                _ = &mut ended, if !waiting.is_closed() => {
                    waiting.close();
                }
            }
            if batch.is_empty() && waiting.is_closed() && waiting.is_empty() {
                return;
            }
            self.send(&mut batch).await;
            let full = dropped.swap(0, Ordering::Relaxed);
            self.losses.add(full, "the queue was full");
        }
    }

    async fn send(&mut self, batch: &mut Vec<Finished>) {
        let of = |finished| match finished {
            Finished::Request(request) => spans(&request, &self.scope),
            Finished::Below(span) => vec![below::span(*span, &self.scope)],
        };
        let batch: Vec<_> = batch.drain(..).flat_map(of).collect();
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        if count == 0 {
            return;
        }
        match self.spans.export(batch).await {
            Ok(()) => metrics::counter!("greenroom_trace_spans_sent_total").increment(count),
            Err(error) => {
                losses::count("export", count);
                let error = self
                    .client
                    .take_error()
                    .unwrap_or_else(|| error.to_string());
                self.losses.add(count, &error);
            }
        }
    }
}

/// Waits for the first, and then for others until the batch is full or late, or the queue
/// closed. What was gathered is kept if this is dropped.
async fn gather(waiting: &mut mpsc::Receiver<Finished>, batch: &mut Vec<Finished>) {
    if waiting.recv_many(batch, BATCH_LEN_MAX).await == 0 {
        return;
    }
    let deadline = Instant::now() + BATCH_DELAY;
    while batch.len() < BATCH_LEN_MAX {
        let more = waiting.recv_many(batch, BATCH_LEN_MAX - batch.len());
        match timeout_at(deadline, more).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}
