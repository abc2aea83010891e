use std::sync::{Arc, Weak};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{AckKind, Message};
use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch};
use tokio::time::{interval, sleep};

use crate::core::Core;
use crate::wire::{Rejection, Request, Response};

/// The servers deliver a message once more if nothing is heard of it for this long.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// A message that is being handled says so this often.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// The longest time that one delivery is handled; then it counts as failed.
pub(super) const HANDLED_WITHIN: Duration = Duration::from_secs(120);
/// The pauses before a message that was not handled is delivered again.
pub(super) const PAUSE_MIN: Duration = Duration::from_secs(1);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The consumer of the durable messages of a group, or of a kind of entity.
pub(crate) struct Consumer {
    pub(crate) core: Weak<Core>,
    /// The subjects of its messages.
    pub(crate) filter: String,
    /// Its name, the same at all nodes.
    pub(crate) name: String,
    pub(crate) in_flight_max: usize,
    pub(crate) handle: Handle,
    /// `true` when no more is to be taken.
    pub(crate) stop: watch::Receiver<bool>,
}

/// Handles one message, at this node or another.
pub(crate) type Handle = Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>;

impl Consumer {
    /// Handles messages until it is stopped, or the node ends.
    pub(crate) async fn run(mut self) {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(5))
            .with_jitter()
            .without_max_times();
        let mut next = pauses.build();
        while !*self.stop.borrow() {
            match self.open().await {
                Ok(messages) => {
                    next = pauses.build();
                    self.read(messages).await;
                }
                Err(error) => {
                    let name = &self.name;
                    tracing::info!(target: TARGET, name, %error, "no durable messages yet");
                }
            }
            if self.core.strong_count() == 0 {
                return;
            }
            sleep(next.next().unwrap_or(Duration::from_secs(5))).await;
        }
    }

    async fn open(&self) -> Result<pull::Stream, async_nats::Error> {
        let core = self.core.upgrade().ok_or("the node has ended")?;
        let nats = core.nats().ok_or("there are no servers")?;
        let config = pull::Config {
            durable_name: Some(self.name.clone()),
            filter_subject: self.filter.clone(),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: 65_536,
            ..Default::default()
        };
        let consumer = nats.stores.durable.create_consumer(config).await?;
        let batch = consumer.stream().max_messages_per_batch(self.in_flight_max);
        Ok(batch.messages().await?)
    }

    /// Handles messages until the connection to the consumer is lost.
    async fn read(&mut self, mut messages: pull::Stream) {
        let permits = Arc::new(Semaphore::new(self.in_flight_max));
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
                return;
            };
            let message = tokio::select! {
                message = messages.next() => message,
                _ = self.stop.wait_for(|stop| *stop) => return,
            };
            let (message, core) = match (message, self.core.upgrade()) {
                (Some(Ok(message)), Some(core)) => (message, core),
                (Some(Err(error)), Some(_)) => {
                    tracing::info!(target: TARGET, name = self.name, %error, "durable messages");
                    return;
                }
                _ => return,
            };
            let handle = Arc::clone(&self.handle);
            tokio::spawn(async move {
                one(&core, &message, handle).await;
                drop(permit);
            });
        }
    }
}

/// Handles one message, and tells the servers what came of it.
async fn one(core: &Core, message: &Message, handle: Handle) {
    let Some(nats) = core.nats() else { return };
    let request = match nats.subjects.request(message) {
        Ok(request) => request,
        Err(error) => {
            core.meters.dead_letter("not_decoded");
            tracing::warn!(target: TARGET, error, "a durable message that nobody can read");
            return acknowledge(message, AckKind::Term).await;
        }
    };
    let request = Request {
        timeout: Some(HANDLED_WITHIN),
        ..request
    };
    let handled = in_progress(message, handle(request.clone())).await;
    let rejection = match handled.outcome {
        Ok(_) => {
            core.meters.delivered();
            return acknowledge(message, AckKind::Ack).await;
        }
        Err(rejection) => rejection,
    };
    let delivered = message.info().map_or(1, |info| info.delivered);
    let delivered = u32::try_from(delivered).unwrap_or(1);
    if rejection.is_passing() || delivered < core.limits.deliveries_max {
        let pause = PAUSE_MIN.saturating_mul(1 << delivered.clamp(1, 7).saturating_sub(1));
        let pause = AckKind::Nak(Some(pause.min(PAUSE_MAX)));
        return acknowledge(message, pause).await;
    }
    bury(core, message, &request, &rejection).await;
}

/// Waits for the handling, and tells the servers meanwhile that it goes on.
async fn in_progress(message: &Message, handled: BoxFuture<'static, Response>) -> Response {
    let mut handled = handled;
    let mut progress = interval(PROGRESS_EVERY);
    progress.tick().await;
    loop {
        tokio::select! {
            response = &mut handled => return response,
            _ = progress.tick() => acknowledge(message, AckKind::Progress).await,
        }
    }
}

/// Moves a message that cannot be handled to the stream of dead ones.
async fn bury(core: &Core, message: &Message, request: &Request, rejection: &Rejection) {
    let Some(nats) = core.nats() else { return };
    core.meters.dead_letter(rejection.label());
    tracing::warn!(
        target: TARGET,
        receiver = %request.target,
        actor = %request.actor,
        message = %request.message,
        %rejection,
        "a durable message is dead"
    );
    match nats.bury(request, rejection).await {
        Ok(()) => acknowledge(message, AckKind::Term).await,
        Err(error) => {
            tracing::warn!(target: TARGET, %error, "a dead letter was not kept: it stays");
            acknowledge(message, AckKind::Nak(Some(PAUSE_MAX))).await;
        }
    }
}

async fn acknowledge(message: &Message, kind: AckKind) {
    if let Err(error) = message.ack_with(kind).await {
        tracing::debug!(target: TARGET, %error, "the message will come again");
    }
}

const TARGET: &str = "greenroom::cluster";
