use bytes::{BufMut, Bytes, BytesMut};
use greenroom_actor::BoxError;

use super::{Key, Loaded, Storage, StorageError, StorageFuture};
use crate::entity::kv::{Bucket, Last, NotReplaced};

/// The tries to write the fence: an activation that is to be replaced may write meanwhile.
const LOAD_TRIES_MAX: u32 = 16;
/// The tries to save: an acknowledgement may be lost.
const SAVE_TRIES_MAX: u32 = 3;
/// Bytes of a message that are none of the content: the fence, and the header fields of the
/// revision.
const OVERHEAD_BYTES: usize = 256;

/// States in a bucket of `JetStream`: for each entity a record of its fence, 8 bytes, and the
/// content. The version is the revision of the record.
///
/// Every write replaces the record that the activation itself wrote before, so once another
/// activation has written, none of it succeeds any more.
#[derive(Debug)]
pub(crate) struct JetStreamStorage {
    states: Bucket,
    /// The largest message that the server takes.
    payload_bytes_max: usize,
}

struct Record {
    fence: u64,
    content: Option<Bytes>,
}

impl JetStreamStorage {
    /// Creates a storage in this bucket.
    pub(crate) fn new(states: Bucket, payload_bytes_max: usize) -> Self {
        Self {
            states,
            payload_bytes_max,
        }
    }

    async fn try_load(&self, key: &Key, fence: u64) -> Result<Loaded, StorageError> {
        let name = key.name();
        for _ in 0..LOAD_TRIES_MAX {
            let (revision, record) = self.last(&name).await?;
            if record.fence > fence {
                return Err(StorageError::Fenced);
            }
            let content = record.content;
            let value = encode(fence, content.as_ref());
            match self.states.replace(&name, value, revision).await {
                Ok(version) => return Ok(Loaded { content, version }),
                Err(NotReplaced::Conflict) => {}
                Err(NotReplaced::Unknown(error)) => return Err(StorageError::Failed(error)),
            }
        }
        let text = format!("others write {key} too: not loaded in {LOAD_TRIES_MAX} tries");
        Err(StorageError::Failed(text.into()))
    }

    async fn try_save(
        &self,
        key: &Key,
        fence: u64,
        version: u64,
        content: Bytes,
    ) -> Result<u64, StorageError> {
        self.check_size(content.len())?;
        let (name, value) = (key.name(), encode(fence, Some(&content)));
        let mut failure = BoxError::from("not tried");
        for _ in 0..SAVE_TRIES_MAX {
            match self.states.replace(&name, value.clone(), version).await {
                Ok(version) => return Ok(version),
                Err(NotReplaced::Conflict) => return self.resolve(&name, fence, &content).await,
                Err(NotReplaced::Unknown(error)) => failure = error,
            }
        }
        Err(StorageError::Failed(failure))
    }

    /// Finds out why the record is another than was expected: because a later activation wrote, or
    /// because the write succeeded whose acknowledgement was lost.
    async fn resolve(&self, name: &str, fence: u64, content: &Bytes) -> Result<u64, StorageError> {
        let (revision, record) = self.last(name).await?;
        if record.fence > fence {
            return Err(StorageError::Fenced);
        }
        if record.fence == fence && record.content.as_ref() == Some(content) {
            return Ok(revision);
        }
        let text = "the record was changed by somebody who is no activation of the entity";
        Err(StorageError::Failed(text.into()))
    }

    async fn last(&self, name: &str) -> Result<(u64, Record), StorageError> {
        let Last { revision, value } =
            self.states.last(name).await.map_err(StorageError::Failed)?;
        let record = value.map_or(Ok(Record::NONE), |value| decode(&value))?;
        Ok((revision, record))
    }

    fn check_size(&self, bytes: usize) -> Result<(), StorageError> {
        let bytes_max = self.payload_bytes_max.saturating_sub(OVERHEAD_BYTES);
        if bytes > bytes_max {
            return Err(StorageError::TooLarge { bytes, bytes_max });
        }
        Ok(())
    }
}

impl Record {
    const NONE: Self = Self {
        fence: 0,
        content: None,
    };
}

/// The content of an entity that was never saved is left out; that of one that was is never empty.
fn encode(fence: u64, content: Option<&Bytes>) -> Bytes {
    let content = content.map_or(&[][..], |content| content);
    let mut record = BytesMut::with_capacity(8 + content.len());
    record.put_u64(fence);
    record.put_slice(content);
    record.freeze()
}

fn decode(record: &Bytes) -> Result<Record, StorageError> {
    let Some((fence, content)) = record.split_first_chunk() else {
        let text = format!("a record has at least 8 bytes, not {}", record.len());
        return Err(StorageError::Failed(text.into()));
    };
    Ok(Record {
        fence: u64::from_be_bytes(*fence),
        content: (!content.is_empty()).then(|| record.slice_ref(content)),
    })
}

impl Storage for JetStreamStorage {
    fn load<'a>(&'a self, key: &'a Key, fence: u64) -> StorageFuture<'a, Loaded> {
        Box::pin(self.try_load(key, fence))
    }

    fn save<'a>(
        &'a self,
        key: &'a Key,
        fence: u64,
        version: u64,
        content: Bytes,
    ) -> StorageFuture<'a, u64> {
        Box::pin(self.try_save(key, fence, version, content))
    }
}
