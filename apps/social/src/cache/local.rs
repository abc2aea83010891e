use std::any::Any;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use moka::future::Cache;
use moka::policy::EvictionPolicy;
use moka::{Equivalent, Expiry};

use super::NotLoaded;

/// The most bytes of JSON kept in this process; in memory they take a few times as much.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The most entries kept in this process.
const ENTRIES_MAX: u64 = 100_000;
/// The least weight of an entry, so that the one limit keeps the other.
const ENTRY_BYTES_MIN: u64 = BYTES_MAX / ENTRIES_MAX;
/// The number of generations, which keys share: forgetting one key forgets some others too. They
/// take half a MiB.
const GENERATIONS: usize = 1 << 16;

/// The cache of this process.
///
/// A value is stored under its key and the key's generation, which is read before the value is
/// loaded. Forgetting a key begins a new generation of it: a value that is being loaded meanwhile
/// is stored under the old one, where nobody looks any more.
pub(super) struct Local {
    entries: Cache<Key, Entry>,
    generations: Box<[AtomicU64]>,
    hasher: RandomState,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) value: Arc<dyn Any + Send + Sync>,
    pub(super) bytes: usize,
    pub(super) expires: Instant,
    /// The time from which it may be loaded anew while it is returned.
    pub(super) renewable_from: Instant,
    /// True if somebody does that.
    pub(super) is_being_renewed: Arc<AtomicBool>,
}

#[derive(Debug, Eq, Hash, PartialEq)]
struct Key {
    generation: u64,
    name: Box<str>,
}

/// A borrowed [`Key`], for lookups without an allocation.
#[derive(Hash)]
struct KeyRef<'a> {
    generation: u64,
    name: &'a str,
}

struct AtItsTime;

impl Local {
    pub(super) fn new() -> Self {
        let entries = Cache::builder()
            .max_capacity(BYTES_MAX)
            // Forgotten entries stay until they are the oldest. By frequency of use they would be
            // preferred to new ones.
            .eviction_policy(EvictionPolicy::lru())
            .weigher(|_: &Key, entry: &Entry| weight(entry))
            .expire_after(AtItsTime)
            .build();
        Self {
            entries,
            generations: (0..GENERATIONS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Returns the stored value, or else that of `fetch`, or of another caller's `fetch` that is
    /// under way; `None` if that fails.
    pub(super) async fn get_or(
        &self,
        name: &str,
        fetch: impl Future<Output = Result<Entry, NotLoaded>>,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        let generation = self.generation(name).load(Ordering::Acquire);
        if let Some(entry) = self.entries.get(&KeyRef { generation, name }).await {
            return Some(entry.value);
        }
        let name = name.into();
        let entry = self
            .entries
            .try_get_with(Key { generation, name }, fetch)
            .await;
        entry.ok().map(|entry| entry.value)
    }

    /// Returns the key's generation and a permit if its value has lived long enough to be loaded
    /// anew, and nobody does: now the caller does.
    pub(super) async fn claim_renewal<P>(
        &self,
        name: &str,
        permit: impl FnOnce() -> Option<P>,
    ) -> Option<(u64, P)> {
        let generation = self.generation(name).load(Ordering::Acquire);
        let entry = self.entries.get(&KeyRef { generation, name }).await?;
        if entry.renewable_from > Instant::now() {
            return None;
        }
        // First, because a claim without a permit would last until the value expires.
        let permit = permit()?;
        let is_mine = !entry.is_being_renewed.swap(true, Ordering::AcqRel);
        is_mine.then_some((generation, permit))
    }

    /// Stores a value that was loaded since the key had this generation, unless there is one that
    /// lives longer, as others have loaded it meanwhile.
    pub(super) async fn keep(&self, name: &str, generation: u64, entry: Entry) {
        let present = self.entries.get(&KeyRef { generation, name }).await;
        if present.is_none_or(|present| present.expires < entry.expires) {
            let name = name.into();
            self.entries.insert(Key { generation, name }, entry).await;
        }
    }

    /// Forgets these keys: from now on no value is returned whose loading began before.
    pub(super) fn forget(&self, names: &[String]) {
        for name in names {
            self.generation(name).fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Forgets all keys, as [`forget`](Self::forget) does.
    pub(super) fn forget_all(&self) {
        for generation in &self.generations {
            generation.fetch_add(1, Ordering::AcqRel);
        }
        self.entries.invalidate_all();
    }

    fn generation(&self, name: &str) -> &AtomicU64 {
        let hash = self.hasher.hash_one(name);
        let index = usize::try_from(hash % GENERATIONS as u64).unwrap_or_default();
        &self.generations[index]
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.generation == key.generation && self.name == &*key.name
    }
}

impl Expiry<Key, Entry> for AtItsTime {
    fn expire_after_create(&self, _: &Key, entry: &Entry, created_at: Instant) -> Option<Duration> {
        Some(entry.expires.saturating_duration_since(created_at))
    }

    fn expire_after_update(
        &self,
        key: &Key,
        entry: &Entry,
        updated_at: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        self.expire_after_create(key, entry, updated_at)
    }
}

fn weight(entry: &Entry) -> u32 {
    let bytes = u64::try_from(entry.bytes).unwrap_or(u64::MAX);
    u32::try_from(bytes.max(ENTRY_BYTES_MIN)).unwrap_or(u32::MAX)
}

impl fmt::Debug for Local {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Local").finish_non_exhaustive()
    }
}
