//! The connection to the servers: requests and responses as messages of NATS.

mod connect;
mod frame;
mod repeats;
mod serve;
mod stores;
mod subjects;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, Subject};
use tokio::sync::Semaphore;

pub use connect::ConnectError;
pub(crate) use connect::retry;
pub(crate) use stores::Stores;
pub(crate) use subjects::Subjects;

use crate::node::NodeId;
use crate::wire::{Rejection, Request, Response};

/// The requests of other nodes that one node handles at a time, over all of its groups and
/// entities. Each group has a limit of its own besides.
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
        let headers = frame::headers(request, request.timeout.and(Some(timeout)));
        let mut asked = async_nats::Request::new()
            .payload(request.payload.clone())
            .timeout(None);
        asked.headers = (!headers.is_empty()).then_some(headers);
        let asked = pin!(self.client.send_request(subject, asked));
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
        let (client, reply) = (&self.client, self.subjects.of_no_reply());
        if headers.is_empty() {
            client.publish_with_reply(subject, reply, payload).await
        } else {
            client
                .publish_with_reply_and_headers(subject, reply, headers, payload)
                .await
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
        headers.insert(async_nats::header::NATS_MESSAGE_ID, request.identity());
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

    /// Returns the subject of a node for a request.
    pub(crate) fn subject_of(&self, node: &NodeId, request: &Request) -> Subject {
        self.subjects.of_node(node, request)
    }
}
