//! Durable messages: kept by the servers until they were handled.

mod consumer;
mod local;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout as within;

pub(crate) use consumer::Consumer;

use crate::core::{Core, failed};
use crate::nats::SendFailure;
use crate::remote::RemoteError;
use crate::wire::Request;

/// The receipt of a durable message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its identity.
    pub id: Box<str>,
    /// `true` if a message of this identity had been taken before; this one was dropped.
    pub is_duplicate: bool,
}

/// Hands a message over to the servers.
pub(crate) async fn deliver(
    core: &Arc<Core>,
    request: Request,
    timeout: Duration,
) -> Result<Delivery, RemoteError> {
    let id = request.id.clone().unwrap_or_default();
    let Some(nats) = core.nats() else {
        local::deliver(core, request)?;
        let is_duplicate = false;
        return Ok(Delivery { id, is_duplicate });
    };
    let subject = nats.subjects.durable(&request);
    match within(timeout, nats.store(subject, &request)).await {
        Ok(Ok(is_duplicate)) => Ok(Delivery { id, is_duplicate }),
        Ok(Err(error)) if is_rejection(&error) => Err(RemoteError::Refused {
            receiver: request.target.to_string(),
            message: request.message.to_string(),
            reason: format!("the servers did not take it: {error}"),
            retry_after: None,
        }),
        Ok(Err(error)) => {
            let failure = SendFailure::Lost(error.to_string());
            Err(failed(&request, failure, None, timeout))
        }
        Err(_) => Err(failed(&request, SendFailure::Late, None, timeout)),
    }
}

/// Returns `true` if the servers surely do not have the message.
fn is_rejection(error: &async_nats::jetstream::context::PublishError) -> bool {
    use async_nats::jetstream::context::PublishErrorKind;
    matches!(
        error.kind(),
        PublishErrorKind::StreamNotFound
            | PublishErrorKind::WrongLastMessageId
            | PublishErrorKind::WrongLastSequence
            | PublishErrorKind::MaxAckPending
    ) || error.to_string().contains("maximum bytes exceeded")
}
