//! The handling of requests that come to a subscription.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use async_nats::{Client, Message, Subject, Subscriber};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::runtime::Handle;

use super::{INBOUND_MAX, Nats, frame};
use crate::core::Core;
use crate::wire::{Rejection, Response};

/// The requests of one subscription that are under way, those that are being rejected included.
/// Further ones wait in the subscription.
const UNDER_WAY_MAX: usize = 2 * INBOUND_MAX;

/// The requests of one subscription that are under way. One task polls all of them: their replies
/// wake it once for as many as there are, and no other thread is woken to share them.
struct UnderWay<F: Future<Output = ()> + Send + 'static>(FuturesUnordered<F>);

impl Nats {
    /// Handles what comes to a subscription, until it or the node ends. What is under way then goes
    /// on.
    pub(crate) async fn serve(core: Weak<Core>, mut subscriber: Subscriber) {
        let mut under_way = UnderWay(FuturesUnordered::new());
        loop {
            let has_room = under_way.0.len() < UNDER_WAY_MAX;
            tokio::select! {
                // A request is polled, and so in its mailbox, before the next one is taken: so one
                // sender's messages keep their order.
                biased;
                Some(()) = under_way.0.next() => {}
                message = subscriber.next(), if has_room => {
                    let (Some(message), Some(core)) = (message, core.upgrade()) else { return };
                    under_way.0.push(handle(core, message));
                }
            }
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Drop for UnderWay<F> {
    fn drop(&mut self) {
        let mut left = std::mem::take(&mut self.0);
        if left.is_empty() {
            return;
        }
        // At the end of the runtime there is nobody left to respond.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { while left.next().await.is_some() {} });
        }
    }
}

/// Handles one request, and responds.
async fn handle(core: Arc<Core>, message: Message) {
    let Some(nats) = core.nats() else { return };
    let response = handled(&core, nats, &message).await;
    respond(&core, &nats.client, message.reply, response).await;
}

async fn handled(core: &Core, nats: &Nats, message: &Message) -> Response {
    let request = match nats.subjects.request(message) {
        Ok(request) => request,
        Err(error) => return Response::rejected(Rejection::NotDecoded { error }),
    };
    let Ok(_permit) = nats.inbound.try_acquire() else {
        return Response::rejected(Rejection::busy(None));
    };
    // What encodes and decodes is a user's, and other requests are polled by the same task.
    let handling = AssertUnwindSafe(core.directory.handle(request)).catch_unwind();
    handling.await.unwrap_or_else(|_| {
        let error = "it panicked outside of the actor".to_owned();
        Response::rejected(Rejection::Failed { error })
    })
}

async fn respond(core: &Core, client: &Client, reply: Option<Subject>, response: Response) {
    let Some(reply) = reply else {
        if let Err(rejection) = &response.outcome {
            core.meters.dead_letter(rejection.label());
            tracing::debug!(target: "greenroom::cluster", %rejection, "dead letter");
        }
        return;
    };
    let bytes_max = core.message_bytes_max();
    let (headers, payload) = frame::of_response(response, bytes_max);
    let sent = match headers {
        Some(headers) => client.publish_with_headers(reply, headers, payload).await,
        None => client.publish(reply, payload).await,
    };
    if let Err(error) = sent {
        tracing::debug!(target: "greenroom::cluster", %error, "a response was not sent");
    }
}
