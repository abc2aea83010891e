use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{FutureExt, ready};
use parking_lot::Mutex;

use super::{Key, Loaded, Storage, StorageError, StorageFuture};

/// A storage in the memory of the process, for tests and for states that need not outlive it.
/// Clones are the same storage.
#[derive(Clone, Debug)]
pub struct MemoryStorage {
    records: Arc<Mutex<HashMap<Key, Record>>>,
    records_max: usize,
}

#[derive(Debug, Default)]
struct Record {
    fence: u64,
    content: Option<Bytes>,
}

impl MemoryStorage {
    /// The default of [`records_max`](Self::records_max).
    pub const RECORDS_MAX_DEFAULT: usize = 1_000_000;

    /// Creates an empty storage.
    #[must_use]
    pub fn new() -> Self {
        Self {
            records: Arc::default(),
            records_max: Self::RECORDS_MAX_DEFAULT,
        }
    }

    /// Sets the number of entities that it keeps, active or not: one more is not activated.
    /// Default: [`RECORDS_MAX_DEFAULT`](Self::RECORDS_MAX_DEFAULT).
    #[must_use]
    pub fn records_max(self, records_max: usize) -> Self {
        Self {
            records_max,
            ..self
        }
    }

    fn load_now(&self, key: &Key, fence: u64) -> Result<Loaded, StorageError> {
        let mut records = self.records.lock();
        if records.len() >= self.records_max && !records.contains_key(key) {
            let text = format!("it holds {} records, as many as it may", records.len());
            return Err(StorageError::Failed(text.into()));
        }
        let record = records.entry(key.clone()).or_default();
        if record.fence > fence {
            return Err(StorageError::Fenced);
        }
        record.fence = fence;
        Ok(Loaded {
            content: record.content.clone(),
            version: 0,
        })
    }

    fn save_now(&self, key: &Key, fence: u64, content: Bytes) -> Result<u64, StorageError> {
        match self.records.lock().get_mut(key) {
            Some(record) if record.fence <= fence => {
                *record = Record {
                    fence,
                    content: Some(content),
                };
                Ok(0)
            }
            Some(_) => Err(StorageError::Fenced),
            None => Err(StorageError::Failed(
                "it was saved before it was loaded".into(),
            )),
        }
    }
}

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage for MemoryStorage {
    fn load<'a>(&'a self, key: &'a Key, fence: u64) -> StorageFuture<'a, Loaded> {
        ready(self.load_now(key, fence)).boxed()
    }

    fn save<'a>(
        &'a self,
        key: &'a Key,
        fence: u64,
        _: u64,
        content: Bytes,
    ) -> StorageFuture<'a, u64> {
        ready(self.save_now(key, fence, content)).boxed()
    }
}
