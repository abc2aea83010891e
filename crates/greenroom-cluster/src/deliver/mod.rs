//! Durable messages: kept by the servers until they were handled.

mod consumer;
mod flight;
mod local;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout as within;

pub(crate) use consumer::{Consumer, GiveUp};
use consumer::{HANDLED_WITHIN, PAUSE_MAX};
pub(crate) use local::LocalDurable;

use crate::core::Core;
use crate::failure::failed;
use crate::nats::SendFailure;
use crate::remote::RemoteError;
use crate::wire::Request;

/// The time within which a durable message of the same identity is not taken again.
pub(crate) const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);

/// The receipt of a durable message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its identity.
    pub id: Box<str>,
    /// `true` if a message of this identity had been taken before; this one was dropped.
    pub is_duplicate: bool,
}

/// Returns the name of a consumer at the servers, of parts that differ from those of any other: `=`
/// is in no name, and stands for the dots that a name may have.
pub(crate) fn consumer_name(parts: &[&str]) -> String {
    parts.join("==").replace('.', "=")
}

/// Returns the time within which a message comes again that was handled already, as long as the
/// servers deliver: whoever passed it on may have waited in vain and then put it off, and be missed
/// twice.
pub(crate) fn repeated_within(redeliver_after: Duration) -> Duration {
    HANDLED_WITHIN + PAUSE_MAX + 2 * redeliver_after
}

/// Hands a message over to the servers.
pub(crate) async fn deliver(
    core: &Arc<Core>,
    request: Request,
    timeout: Duration,
) -> Result<Delivery, RemoteError> {
    let Some(nats) = core.nats() else {
        return local::deliver(core, request);
    };
    let id = request.id.clone().unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_of_other_names_have_other_names() {
        let names = [
            ["group", "web", "mail_sender.v1"],
            ["group", "web_mail", "sender.v1"],
            ["group", "web", "mail.sender.v1"],
        ];
        let names = names.map(|parts| consumer_name(&parts));
        assert_eq!(names[0], "group==web==mail_sender=v1");
        assert!(names[0] != names[1] && names[1] != names[2] && names[2] != names[0]);
        let entities = ["photo.album.v1", "photo_album.v1"];
        let [one, other] = entities.map(|kind| consumer_name(&["entity", kind]));
        assert_ne!(one, other);
    }
}
