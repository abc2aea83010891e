//! Buckets of `JetStream`, as leases and states use them: the last record is read, and replaced if
//! it is still the last.

use std::error::Error;
use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::kv::Store;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use async_nats::jetstream::{self, Context, ErrorCode};
use bytes::Bytes;
use greenroom_actor::BoxError;
use tokio::time::sleep;

/// The wait for a write that has reached the servers before, and that they have yet to store.
const BEING_REPLACED: Duration = Duration::from_millis(20);

/// A bucket, and the way to write to it.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    jetstream: Context,
    store: Store,
}

/// The last record of a key.
pub(super) struct Last {
    /// The number by which it can be replaced; 0 if there never was one.
    pub(super) revision: u64,
    /// `None` if there is no record, or it was deleted.
    pub(super) value: Option<Bytes>,
}

/// The reason for which a record was not replaced.
pub(super) enum NotReplaced {
    /// It is not the last any more.
    Conflict,
    /// The server did not say whether it was replaced, or refused.
    Unknown(BoxError),
}

impl Bucket {
    pub(crate) fn new(jetstream: &Context, store: &Store) -> Self {
        Self {
            jetstream: jetstream.clone(),
            store: store.clone(),
        }
    }

    /// Reads the last record from the leader of the bucket. `Store::get` would ask any replica, and
    /// those lag. A leader that was deposed and does not know may still lag, so a reader must not
    /// rely on it; who replaces a record need not.
    pub(super) async fn last(&self, key: &str) -> Result<Last, BoxError> {
        let stream = &self.store.stream;
        match stream
            .get_last_raw_message_by_subject(&self.subject(key))
            .await
        {
            Ok(message) => {
                let is_deleted = message.headers.get("KV-Operation").is_some();
                Ok(Last {
                    revision: message.sequence,
                    value: (!is_deleted).then_some(message.payload),
                })
            }
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => {
                Ok(Last {
                    revision: 0,
                    value: None,
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the record if the last one is that of this revision, and returns its own. Revisions
    /// grow: they are those of the whole bucket.
    ///
    /// Several servers before 2.11 compare the revision when they get the write, with what they
    /// have stored by then: of two writes that come before either is stored, both are taken. What
    /// they compare when they store is the id of a message. So each that replaces the same record
    /// has the same id: the number of that record. The first record of a key is compared late
    /// anyway.
    pub(super) async fn replace(
        &self,
        key: &str,
        value: Bytes,
        revision: u64,
    ) -> Result<u64, NotReplaced> {
        let mut message = PublishMessage::build()
            .payload(value)
            .expected_last_subject_sequence(revision);
        if revision > 0 {
            message = message.message_id(revision.to_string());
        }
        let sent = self.jetstream.send_publish(self.subject(key), message);
        let acknowledged = async { sent.await?.await }.await;
        match acknowledged {
            Ok(acknowledged) if acknowledged.duplicate => Err(NotReplaced::Conflict),
            Ok(acknowledged) => Ok(acknowledged.sequence),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                Err(NotReplaced::Conflict)
            }
            Err(error) if is_being_replaced(&error) => {
                sleep(BEING_REPLACED).await;
                Err(NotReplaced::Conflict)
            }
            Err(error) => Err(NotReplaced::Unknown(error.into())),
        }
    }

    fn subject(&self, key: &str) -> String {
        format!("{}{key}", self.store.prefix)
    }
}

/// Returns `true` if another write of the same record was there first, and is not stored yet. So
/// servers respond since 2.11.
fn is_being_replaced(error: &PublishError) -> bool {
    let reason = error.source().and_then(|source| source.downcast_ref());
    reason.is_some_and(|reason: &jetstream::Error| {
        reason.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT
    })
}
