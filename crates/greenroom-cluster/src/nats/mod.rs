//! The connection to the servers: requests and responses as messages of NATS.

mod connect;
mod frame;
mod stores;
mod subjects;

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, Message, Subject, Subscriber};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

pub use connect::ConnectError;
pub(crate) use stores::Stores;
pub(crate) use subjects::Subjects;

use crate::core::Core;
use crate::node::NodeId;
use crate::wire::{Rejection, Request, Response};

/// The requests of other nodes that one node handles at a time, over all of its groups and entities.
/// Each group has a limit of its own besides.
const INBOUND_MAX: usize = 16_384;

/// The connection of a node to the servers.
pub(crate) struct Nats {
    pub(crate) client: Client,
    pub(crate) subjects: Subjects,
    pub(crate) stores: Stores,
    inbound: Arc<Semaphore>,
}

/// A request that did not come back with a response.
#[derive(Debug)]
pub(crate) enum SendFailure {
    /// Nobody listens there: it was surely not handled.
    NoResponders,
    /// As many of this node's asks are under way there as may be.
    TooMany,
    /// The deadline passed.
    Late,
    /// The connection or the node was lost, and with it perhaps the request.
    Lost(String),
}

impl Nats {
    /// Sends a request to a subject, and waits for the response.
    pub(crate) async fn ask(
        &self,
        subject: Subject,
        request: &Request,
        timeout: Duration,
    ) -> Result<Response, SendFailure> {
        let asked = async_nats::Request::new()
            .headers(frame::headers(request, request.timeout.and(Some(timeout))))
            .payload(request.payload.clone())
            .timeout(None);
        let asked = self.client.send_request(subject, asked);
        match tokio::time::timeout(timeout, asked).await {
            Err(_) => Err(SendFailure::Late),
            Ok(Ok(message)) => Ok(frame::response(message)),
            Ok(Err(error)) => Err(match error.kind() {
                RequestErrorKind::TimedOut => SendFailure::Late,
                RequestErrorKind::NoResponders => SendFailure::NoResponders,
                _ => SendFailure::Lost(error.to_string()),
            }),
        }
    }

    /// Sends a request whose response nobody waits for.
    pub(crate) async fn tell(
        &self,
        subject: Subject,
        request: &Request,
    ) -> Result<(), async_nats::PublishError> {
        let (headers, payload) = (frame::headers(request, None), request.payload.clone());
        let client = &self.client;
        if headers.is_empty() {
            client.publish(subject, payload).await
        } else {
            client.publish_with_headers(subject, headers, payload).await
        }
    }

    /// Sends a durable message, and waits until the servers have it safe. Returns `true` if they
    /// had it already.
    pub(crate) async fn store(
        &self,
        subject: Subject,
        request: &Request,
    ) -> Result<bool, async_nats::jetstream::context::PublishError> {
        let mut headers = frame::headers(request, None);
        let id = request.id.as_deref().unwrap_or_default();
        headers.insert(async_nats::header::NATS_MESSAGE_ID, id);
        let jetstream = &self.stores.jetstream;
        let sent = jetstream.publish_with_headers(subject, headers, request.payload.clone());
        let acknowledged = sent.await?.await?;
        Ok(acknowledged.duplicate)
    }

    /// Keeps a durable message that could not be handled, with the reason.
    pub(crate) async fn bury(
        &self,
        request: &Request,
        rejection: &Rejection,
    ) -> Result<(), async_nats::jetstream::context::PublishError> {
        let mut headers = frame::headers(request, None);
        frame::add_error(&mut headers, rejection);
        let subject = self.subjects.dead(request);
        let jetstream = &self.stores.jetstream;
        let payload = request.payload.clone();
        let sent = jetstream.publish_with_headers(subject, headers, payload);
        sent.await?.await?;
        Ok(())
    }

    /// Handles what comes to a subscription, until it or the node ends.
    pub(crate) async fn serve(core: Weak<Core>, mut subscriber: Subscriber) {
        while let Some(message) = subscriber.next().await {
            let Some(core) = core.upgrade() else { return };
            let Some(nats) = core.nats() else { return };
            nats.receive(&core, message).await;
        }
    }

    async fn receive(&self, core: &Arc<Core>, message: Message) {
        let request = match self.subjects.request(&message) {
            Ok(request) => request,
            Err(error) => {
                let rejection = Rejection::NotDecoded { error };
                return self.reject(core, message.reply, rejection).await;
            }
        };
        let Ok(permit) = Arc::clone(&self.inbound).try_acquire_owned() else {
            return self
                .reject(core, message.reply, Rejection::busy(None))
                .await;
        };
        let mut handled = core.directory.handle(request);
        // The first poll puts the message into the mailbox: so one sender's messages keep order.
        let polled = futures_util::poll!(&mut handled);
        if let std::task::Poll::Ready(response) = polled {
            return self.respond(core, message.reply, response).await;
        }
        let (core, client) = (Arc::clone(core), self.client.clone());
        tokio::spawn(async move {
            let response = handled.await;
            drop(permit);
            respond(&core, &client, message.reply, response).await;
        });
    }

    async fn reject(&self, core: &Core, reply: Option<Subject>, rejection: Rejection) {
        let response = Response::rejected(rejection);
        self.respond(core, reply, response).await;
    }

    fn respond<'a>(
        &'a self,
        core: &'a Core,
        reply: Option<Subject>,
        response: Response,
    ) -> BoxFuture<'a, ()> {
        Box::pin(respond(core, &self.client, reply, response))
    }

    /// Returns the subject of a node for a request.
    pub(crate) fn subject_of(&self, node: &NodeId, request: &Request) -> Subject {
        self.subjects.of_node(node, request)
    }
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
