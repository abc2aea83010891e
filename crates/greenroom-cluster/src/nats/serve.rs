//! The handling of requests that come to a subscription.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use async_nats::{Message, Subject, Subscriber};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::repeats::Repeats;
use super::{INBOUND_MAX, Nats, frame};
use crate::core::Core;
use crate::wire::{Rejection, Response};

/// The requests of one subscription that are under way, those that are being rejected included.
/// Further ones wait in the subscription.
const UNDER_WAY_MAX: usize = 2 * INBOUND_MAX;
/// The responses that are sent at once. What is there is taken and handled before the first of them
/// is sent: one by one, each would have a write of its own, and a read at its server.
const BATCH_MAX: usize = 128;

/// The requests of one subscription that are under way. One task polls all of them, and responds:
/// their replies wake it once for as many as there are, and no other thread is woken to share them.
struct UnderWay<F: Future<Output = Handled> + Send + 'static> {
    handling: FuturesUnordered<F>,
    handled: VecDeque<Handled>,
}

/// A request that was handled or rejected, and has no response yet.
struct Handled {
    core: Arc<Core>,
    reply: Option<Subject>,
    response: Response,
}

impl Nats {
    /// Handles what comes to a subscription, until it or the node ends. What is under way then goes
    /// on.
    pub(crate) async fn serve(core: Weak<Core>, mut subscriber: Subscriber) {
        let mut under_way = UnderWay {
            handling: FuturesUnordered::new(),
            handled: VecDeque::new(),
        };
        let mut repeats = Repeats::new();
        loop {
            let UnderWay { handling, handled } = &mut under_way;
            let is_full = handled.len() == BATCH_MAX;
            let has_room = handling.len() < UNDER_WAY_MAX;
            tokio::select! {
                // A request is polled, and so in its mailbox, before the next one is taken: so one
                // sender's messages keep their order.
                biased;
                Some(one) = handling.next(), if !is_full => handled.push_back(one),
                message = subscriber.next(), if has_room && !is_full => {
                    let (Some(message), Some(core)) = (message, core.upgrade()) else { return };
                    if !message.reply.as_ref().is_some_and(|reply| repeats.has(reply)) {
                        handling.push(handle(core, message));
                    }
                }
                () = respond(handled), if !handled.is_empty() => {}
            }
        }
    }
}

impl<F: Future<Output = Handled> + Send + 'static> Drop for UnderWay<F> {
    fn drop(&mut self) {
        let mut handling = std::mem::take(&mut self.handling);
        let mut handled = std::mem::take(&mut self.handled);
        if handling.is_empty() && handled.is_empty() {
            return;
        }
        // At the end of the runtime there is nobody left to respond.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                respond(&mut handled).await;
                while let Some(one) = handling.next().await {
                    one.respond().await;
                }
            });
        }
    }
}

/// Sends responses. Dropped meanwhile, it leaves those that were not sent.
async fn respond(handled: &mut VecDeque<Handled>) {
    while let Some(one) = handled.front() {
        one.respond().await;
        handled.pop_front();
    }
}

/// Handles one request. The future is small, as each has one: a larger piece of memory costs an
/// allocator much more.
fn handle(core: Arc<Core>, message: Message) -> impl Future<Output = Handled> + Send {
    let begun = begin(&core, &message);
    let subjects = core.nats().map(|nats| &nats.subjects);
    let is_awaited = subjects.is_some_and(|subjects| subjects.is_awaited(&message));
    let reply = message.reply.filter(|_| is_awaited);
    async move {
        let response = match begun {
            Ok((handling, permit)) => {
                let response = handling.await;
                drop(permit);
                response
            }
            Err(rejection) => Response::rejected(rejection),
        };
        Handled {
            core,
            reply,
            response,
        }
    }
}

/// A request that is being handled, with one of the node's [permits](Nats::inbound).
type Begun = (BoxFuture<'static, Response>, OwnedSemaphorePermit);

fn begin(core: &Core, message: &Message) -> Result<Begun, Rejection> {
    let Some(nats) = core.nats() else {
        return Err(Rejection::Draining);
    };
    let request = nats.subjects.request(message);
    let request = request.map_err(|error| Rejection::NotDecoded { error })?;
    let permit = Arc::clone(&nats.inbound).try_acquire_owned();
    let permit = permit.map_err(|_| Rejection::busy(None))?;
    Ok((core.directory.handle(request), permit))
}

impl Handled {
    async fn respond(&self) {
        let (Some(reply), Some(nats)) = (&self.reply, self.core.nats()) else {
            if let Err(rejection) = &self.response.outcome {
                self.core.meters.dead_letter(rejection.label());
                tracing::debug!(target: "greenroom::cluster", %rejection, "dead letter");
            }
            return;
        };
        let bytes_max = self.core.message_bytes_max();
        let (headers, payload) = frame::of_response(self.response.clone(), bytes_max);
        let (client, reply) = (&nats.client, reply.clone());
        let sent = match headers {
            Some(headers) => client.publish_with_headers(reply, headers, payload).await,
            None => client.publish(reply, payload).await,
        };
        if let Err(error) = sent {
            tracing::debug!(target: "greenroom::cluster", %error, "a response was not sent");
        }
    }
}
