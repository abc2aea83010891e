//! The errors of requests that were rejected, or had no response.

use std::time::Duration;

use crate::nats::SendFailure;
use crate::node::NodeId;
use crate::remote::RemoteError;
use crate::wire::{Rejection, Request};

/// Returns the error of a request that a node rejected.
pub(crate) fn rejected(request: &Request, rejection: Rejection, after: Duration) -> RemoteError {
    let (receiver, message) = (request.target.to_string(), request.message.to_string());
    match rejection {
        Rejection::NoSuchActor { offered } => no_such(request, offered),
        Rejection::NoSuchMessage { known } => RemoteError::NoSuchMessage {
            receiver,
            actor: request.actor.to_string(),
            message,
            known,
        },
        Rejection::Late => RemoteError::Late {
            receiver,
            message,
            after,
        },
        Rejection::Ended => RemoteError::Lost {
            receiver,
            message,
            reason: "the actor has ended".to_owned(),
            node: None,
        },
        Rejection::Failed { error } => RemoteError::Failed {
            receiver,
            message,
            reason: error,
        },
        Rejection::Busy { wait_ms } => RemoteError::Refused {
            receiver,
            message,
            retry_after: wait_ms.map(Duration::from_millis),
            reason: Rejection::Busy { wait_ms }.to_string(),
        },
        rejection => RemoteError::Refused {
            receiver,
            message,
            reason: rejection.to_string(),
            retry_after: None,
        },
    }
}

/// Returns the error of a request that nobody takes.
pub(crate) fn no_such(request: &Request, offered: Vec<String>) -> RemoteError {
    RemoteError::NoSuch {
        receiver: request.target.to_string(),
        actor: request.actor.to_string(),
        offered,
    }
}

/// Returns the error of a request that had no response.
pub(crate) fn failed(
    request: &Request,
    failure: SendFailure,
    node: Option<&NodeId>,
    after: Duration,
) -> RemoteError {
    let (receiver, message) = (request.target.to_string(), request.message.to_string());
    match failure {
        SendFailure::NoResponders => no_such(request, Vec::new()),
        SendFailure::TooMany => RemoteError::Refused {
            receiver,
            message,
            reason: "as many asks of this node are under way there as may be".to_owned(),
            retry_after: None,
        },
        SendFailure::Late => RemoteError::Late {
            receiver,
            message,
            after,
        },
        SendFailure::Lost(reason) => RemoteError::Lost {
            receiver,
            message,
            reason,
            node: node.cloned(),
        },
    }
}
