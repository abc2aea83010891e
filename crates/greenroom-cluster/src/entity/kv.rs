//! What leases and states need of a bucket of `JetStream`: to read the last record, and to replace
//! it if it is still the last.

use async_nats::jetstream::kv::{Store, UpdateErrorKind};
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use greenroom_actor::BoxError;

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

/// Reads the last record from the leader of the bucket. `Store::get` would ask any replica, and
/// those lag. A leader that was deposed and does not know may still lag, so a reader must not rely
/// on it; who replaces a record need not.
pub(super) async fn last(store: &Store, key: &str) -> Result<Last, BoxError> {
    let subject = format!("{}{key}", store.prefix);
    match store.stream.get_last_raw_message_by_subject(&subject).await {
        Ok(message) => {
            let is_deleted = message.headers.get("KV-Operation").is_some();
            Ok(Last {
                revision: message.sequence,
                value: (!is_deleted).then_some(message.payload),
            })
        }
        Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(Last {
            revision: 0,
            value: None,
        }),
        Err(error) => Err(error.into()),
    }
}

/// Replaces the record if the last one is that of this revision, and returns its own. Revisions
/// grow: they are those of the whole bucket.
pub(super) async fn replace(
    store: &Store,
    key: &str,
    value: Bytes,
    revision: u64,
) -> Result<u64, NotReplaced> {
    let replaced = store.update(key, value, revision).await;
    replaced.map_err(|error| match error.kind() {
        UpdateErrorKind::WrongLastRevision => NotReplaced::Conflict,
        _ => NotReplaced::Unknown(error.into()),
    })
}
