use std::sync::{Arc, Weak};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{AckKind, Message};
use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{interval, sleep};

use super::flight::Flight;
use crate::core::Core;
use crate::remote::TIMEOUT_MAX;
use crate::wire::{Rejection, Request, Response};

/// A message that is being handled says so this often within the wait before a redelivery.
const SIGNS_OF_LIFE: u32 = 3;
/// The longest time in which a consumer's messages do not get on: then they are given up, to come
/// again, perhaps elsewhere. A message that is alone must be handled within it.
pub(super) const HANDLED_WITHIN: Duration = Duration::from_mins(2);
/// The most messages that are fetched at once.
const FETCHED_MAX: usize = 256;
/// The servers forget a fetch for which there are no messages after this time, and then there is
/// another one. Where a fetch was lost, that is 5 s later.
const FETCH_LASTS: Duration = Duration::from_secs(5);
/// The pauses before a message that was not handled is delivered again.
pub(super) const PAUSE_MIN: Duration = Duration::from_secs(1);
pub(super) const PAUSE_MAX: Duration = Duration::from_mins(1);

/// The consumer of the durable messages of a group, or of a kind of entity.
pub(crate) struct Consumer {
    pub(crate) core: Weak<Core>,
    /// The subjects of its messages.
    pub(crate) filter: String,
    /// Its name, the same at all nodes.
    pub(crate) name: String,
    pub(crate) in_flight_max: usize,
    pub(crate) give_up: GiveUp,
    pub(crate) handle: Handle,
    /// `true` when no more is to be taken.
    pub(crate) stop: watch::Receiver<bool>,
}

/// The moment when a message is given up, to come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GiveUp {
    /// After [`HANDLED_WITHIN`], each by itself.
    Each,
    /// As soon as none was handled for [`HANDLED_WITHIN`]: they wait for one another.
    All,
}

/// Handles one message, at this node or another.
pub(crate) type Handle = Arc<dyn Fn(Request) -> Handling + Send + Sync>;

type Handling = BoxFuture<'static, Response>;

impl Consumer {
    /// Handles messages until it is stopped, or the node ends.
    pub(crate) async fn run(mut self) {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(5))
            .with_jitter()
            .without_max_times();
        let mut next = pauses.build();
        let permits = Arc::new(Semaphore::new(self.in_flight_max));
        let flight = Arc::new(Flight::new());
        while !*self.stop.borrow() {
            let read = match self.open().await {
                Ok(consumer) => {
                    next = pauses.build();
                    self.read(&consumer, &permits, &flight).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = read {
                let name = &self.name;
                tracing::info!(target: TARGET, name, %error, "no durable messages for now");
            }
            if self.core.strong_count() == 0 {
                return;
            }
            sleep(next.next().unwrap_or(Duration::from_secs(5))).await;
        }
    }

    async fn open(&self) -> Result<PullConsumer, async_nats::Error> {
        let core = self.core.upgrade().ok_or("the node has ended")?;
        let nats = core.nats().ok_or("there are no servers")?;
        let config = pull::Config {
            durable_name: Some(self.name.clone()),
            filter_subject: self.filter.clone(),
            ack_policy: AckPolicy::Explicit,
            ack_wait: core.limits.redeliver_after,
            max_ack_pending: 65_536,
            ..Default::default()
        };
        Ok(nats.stores.durable.create_consumer(config).await?)
    }

    /// Handles messages until it is stopped, or a fetch fails. No more are fetched than are handled
    /// at once: of one that waited here the servers would hear nothing, and deliver it again.
    async fn read(
        &mut self,
        consumer: &PullConsumer,
        permits: &Arc<Semaphore>,
        flight: &Arc<Flight>,
    ) -> Result<(), async_nats::Error> {
        while self.core.strong_count() > 0 {
            let free = async {
                // An actor that hangs gets no others, and no second time what it has.
                flight.goes_on().await;
                free(permits).await
            };
            let mut free = tokio::select! {
                free = free => free?,
                () = stopped(&mut self.stop) => return Ok(()),
            };
            let fetch = consumer.batch().max_messages(free.num_permits());
            let mut messages = fetch.expires(FETCH_LASTS).messages().await?;
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    () = stopped(&mut self.stop) => {
                        give_back(messages).await;
                        return Ok(());
                    }
                };
                let (Some(message), Some(permit)) = (message.transpose()?, free.split(1)) else {
                    break;
                };
                self.begin(message, permit, Arc::clone(flight));
            }
        }
        Ok(())
    }

    fn begin(&self, message: Message, permit: OwnedSemaphorePermit, flight: Arc<Flight>) {
        let Some(core) = self.core.upgrade() else {
            return;
        };
        let one = One {
            core,
            message,
            flight,
            give_up: self.give_up,
        };
        let handle = Arc::clone(&self.handle);
        tokio::spawn(async move {
            one.handle(handle).await;
            drop(permit);
        });
    }
}

/// Waits until a message may be handled, and returns the permits for all that may.
async fn free(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, async_nats::Error> {
    let mut free = Arc::clone(permits).acquire_owned().await?;
    let more = permits.available_permits().min(FETCHED_MAX - 1);
    let more = u32::try_from(more).unwrap_or_default();
    if let Ok(more) = Arc::clone(permits).try_acquire_many_owned(more) {
        free.merge(more);
    }
    Ok(free)
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Its sender ends with the publication, which stops it too.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Gives back what came and was not begun, so that others have it at once.
async fn give_back(mut messages: pull::Batch) {
    while let Some(Some(Ok(message))) = messages.next().now_or_never() {
        acknowledge(&message, AckKind::Nak(None)).await;
    }
}

/// One delivery of a message.
struct One {
    core: Arc<Core>,
    message: Message,
    flight: Arc<Flight>,
    give_up: GiveUp,
}

impl One {
    /// Handles the message, and tells the servers what came of it.
    async fn handle(&self, handle: Handle) {
        let Some(nats) = self.core.nats() else { return };
        let request = match nats.subjects.request(&self.message) {
            Ok(request) => request,
            Err(error) => {
                self.core.meters.dead_letter("not_decoded");
                tracing::warn!(target: TARGET, error, "a durable message that nobody can read");
                return acknowledge(&self.message, AckKind::Term).await;
            }
        };
        let timeout = match self.give_up {
            GiveUp::Each => HANDLED_WITHIN,
            GiveUp::All => TIMEOUT_MAX,
        };
        let request = Request {
            timeout: Some(timeout),
            ..request
        };
        let mut handled = handle(request.clone());
        if let Some(response) = self.in_progress(&request, &mut handled).await {
            let outcome = self.judged(response, timeout);
            return self.settle(&request, outcome).await;
        }
        // It is in the actor's mailbox all the same, and keeps its share of what is in flight until
        // it is handled there, in vain perhaps.
        let _given_up = self.flight.give_up();
        if handled.await.outcome.is_ok() {
            self.settle(&request, Ok(())).await;
        }
        self.flight.is_handled();
    }

    /// Returns the outcome of a message. Where it waited with others for longer than may be, it has
    /// failed: nobody else was in its way.
    fn judged(&self, response: Response, timeout: Duration) -> Result<(), Rejection> {
        match response.outcome {
            Ok(_) => Ok(()),
            Err(Rejection::Late) if self.give_up == GiveUp::All => {
                Err(Rejection::too_slow(timeout))
            }
            Err(rejection) => Err(rejection),
        }
    }

    /// Tells the servers what came of the message.
    async fn settle(&self, request: &Request, outcome: Result<(), Rejection>) {
        let info = self.message.info().ok();
        let sequence = info.as_ref().map_or(0, |info| info.stream_sequence);
        let Err(rejection) = outcome else {
            self.flight.forget(sequence);
            self.core.meters.delivered();
            return acknowledge(&self.message, AckKind::Ack).await;
        };
        let failures_max = self.core.limits.failures_max;
        if !rejection.is_passing() && self.flight.failed(sequence) >= failures_max {
            return self.bury(request, &rejection, sequence).await;
        }
        let delivered = info.map_or(1, |info| u32::try_from(info.delivered).unwrap_or(1));
        let pause = PAUSE_MIN.saturating_mul(1 << delivered.clamp(1, 7).saturating_sub(1));
        acknowledge(&self.message, AckKind::Nak(Some(pause.min(PAUSE_MAX)))).await;
    }

    /// Waits for the handling, and tells the servers meanwhile that it goes on. `None` if the
    /// message was given up, and comes again.
    async fn in_progress(&self, request: &Request, handled: &mut Handling) -> Option<Response> {
        let in_flight = self.flight.begin();
        let stalled = in_flight.stalled();
        tokio::pin!(stalled);
        let mut progress = interval(self.core.limits.redeliver_after / SIGNS_OF_LIFE);
        progress.tick().await;
        loop {
            tokio::select! {
                response = &mut *handled => {
                    if response.outcome.as_ref().err().is_none_or(|error| !error.is_passing()) {
                        self.flight.is_handled();
                    }
                    return Some(response);
                }
                is_blamed = &mut stalled, if self.give_up == GiveUp::All => {
                    let rejection = if is_blamed {
                        Rejection::too_slow(HANDLED_WITHIN)
                    } else {
                        Rejection::Late
                    };
                    self.settle(request, Err(rejection)).await;
                    return None;
                }
                _ = progress.tick() => acknowledge(&self.message, AckKind::Progress).await,
            }
        }
    }

    /// Moves a message that cannot be handled to the stream of dead ones.
    async fn bury(&self, request: &Request, rejection: &Rejection, sequence: u64) {
        let Some(nats) = self.core.nats() else { return };
        tracing::warn!(
            target: TARGET,
            receiver = %request.target,
            actor = %request.actor,
            message = %request.message,
            %rejection,
            "a durable message is dead"
        );
        match nats.bury(request, rejection).await {
            Ok(()) => {
                self.core.meters.dead_letter(rejection.label());
                self.flight.forget(sequence);
                acknowledge(&self.message, AckKind::Term).await;
            }
            Err(error) => {
                tracing::warn!(target: TARGET, %error, "a dead letter was not kept: it stays");
                acknowledge(&self.message, AckKind::Nak(Some(PAUSE_MAX))).await;
            }
        }
    }
}

async fn acknowledge(message: &Message, kind: AckKind) {
    if let Err(error) = message.ack_with(kind).await {
        tracing::debug!(target: TARGET, %error, "the message will come again");
    }
}

const TARGET: &str = "greenroom::cluster";
