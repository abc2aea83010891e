//! A cache of records that are read often, in this process and in Redis if there is one,
//! invalidated on all replicas over the bus.
//!
//! Its guarantees: a value is at most its time to live old, counted from when its loading began.
//! Once [`Cache::invalidate`] has returned, this process never again returns a value whose loading
//! began before. Other replicas hear of it over the bus, in milliseconds; what they miss while the
//! bus is down they forget when it is back, and in any case with the time to live. A Redis that is
//! slow or down costs a request 50 ms at most, and then nothing until it is back.

mod local;
mod remote;

use std::any::Any;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use greenroom::bus::{self, Bus, SinkSubscription};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::completing::complete;

use local::{Entry, Local};
use remote::Remote;

/// The longest time to live.
const TTL_MAX: Duration = Duration::from_mins(1);
/// The number of loads that go on at a time while nobody waits for them. What comes beyond is
/// loaded by the next who asks.
const UNAWAITED_MAX: usize = 16;
/// The topic that carries [`Invalidation`]s.
const TOPIC: &str = "/cache/invalidate";

/// A cache of values of any type under text keys; cheap to clone.
#[derive(Clone, Debug)]
pub struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    local: Arc<Local>,
    remote: Option<Arc<Remote>>,
    bus: Bus,
    /// The name of this cache on the bus, where it receives its own messages too.
    name: Uuid,
    unawaited: Arc<Semaphore>,
    _subscription: Arc<SinkSubscription>,
}

/// A message that the values of these keys have changed.
#[derive(Debug, Deserialize, Serialize)]
struct Invalidation {
    from: Uuid,
    keys: Vec<String>,
}

/// The error of a failed load, whose reason the loading caller keeps.
struct NotLoaded;

impl Cache {
    /// Starts to listen for the invalidations of other replicas, on the calling tokio runtime,
    /// which it uses for its lifetime.
    ///
    /// # Errors
    /// Fails if the client cannot be used, or the bus takes no more subscriptions.
    pub fn start(bus: &Bus, redis: Option<redis::Client>) -> anyhow::Result<Self> {
        let local = Arc::new(Local::new());
        let name = Uuid::now_v7();
        let heard_by = Arc::clone(&local);
        let hear = move |event| {
            hear(&event, name, &heard_by);
            Ok(())
        };
        let subscription = Arc::new(bus.subscribe_sink(TOPIC, hear)?);
        forget_what_was_loaded_unheard(Arc::clone(&subscription), Arc::clone(&local));
        Ok(Self(Arc::new(Inner {
            local,
            remote: redis.map(Remote::start).transpose()?,
            bus: bus.clone(),
            name,
            unawaited: Arc::new(Semaphore::new(UNAWAITED_MAX)),
            _subscription: subscription,
        })))
    }

    /// Returns the value of `key`, or else that of `load`, which is then stored for `ttl` (rounded
    /// up to whole seconds, at most 60 s).
    ///
    /// Of many concurrent calls for a missing key one loads; if it is cancelled, another one does.
    /// An error of `load` is neither stored nor shared: the other callers load for themselves.
    ///
    /// # Errors
    /// Fails if `load` does.
    pub async fn get_or_load<T, E>(
        &self,
        key: &str,
        ttl: Duration,
        load: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E>
    where
        T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
        E: Send + Sync + 'static,
    {
        let mut load = pin!(load);
        let mut failure = None;
        let fetch = async {
            let fetched = self.0.fetch(key, ttl, Duration::ZERO, load.as_mut()).await;
            fetched.map_err(|error| {
                failure = Some(error);
                NotLoaded
            })
        };
        let kept = self.0.local.get_or(key, fetch).await;
        match (kept, failure) {
            (_, Some(error)) => Err(error),
            (Some(kept), None) => match kept.downcast_ref::<T>() {
                Some(value) => Ok(value.clone()),
                // The key holds a value of another type.
                None => load.await,
            },
            (None, None) => load.await,
        }
    }

    /// Returns what [`get_or_load`](Self::get_or_load) does, and has the value loaded anew once
    /// half of its time is over, so that nobody waits for a value that is asked for often: until
    /// the new one is there callers get the old one, which is at most `ttl` old as ever.
    ///
    /// # Errors
    /// Fails if there is no value and `load` fails. If it fails later the old value is kept for its
    /// time.
    pub async fn get_or_renew<T, E, F>(
        &self,
        key: &str,
        ttl: Duration,
        load: impl Fn() -> F,
    ) -> Result<T, E>
    where
        T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
        E: Send + Sync + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let claim = self.0.local.claim_renewal(key, || self.permit());
        if let Some((generation, permit)) = claim.await {
            let (inner, name, load) = (Arc::clone(&self.0), key.to_owned(), load());
            tokio::spawn(async move {
                let left_min = whole_seconds(ttl) / 2;
                if let Ok(entry) = inner.fetch(&name, ttl, left_min, pin!(load)).await {
                    inner.local.keep(&name, generation, entry).await;
                }
                drop(permit);
            });
        }
        self.get_or_load(key, ttl, load()).await
    }

    /// Has a value loaded, if there is none, before anybody asks for it.
    pub fn load_ahead<T, E, F>(&self, key: &str, ttl: Duration, load: F)
    where
        T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
        E: Send + Sync + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let Some(permit) = self.permit() else { return };
        let (cache, key) = (self.clone(), key.to_owned());
        tokio::spawn(async move {
            // Who asks for it next is told the error, if there still is one.
            let _ = cache.get_or_load(&key, ttl, load).await;
            drop(permit);
        });
    }

    /// Returns the permit of a load that nobody waits for, unless there are too many.
    fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.unawaited).try_acquire_owned().ok()
    }

    /// Forgets these keys, here at once, and on all replicas soon.
    ///
    /// Once started it completes, even if the caller is cancelled.
    pub async fn invalidate(&self, keys: &[String]) {
        self.0.local.forget(keys);
        let Some(remote) = self.0.remote.clone() else {
            self.0.publish(keys.to_vec());
            return;
        };
        let (inner, keys) = (Arc::clone(&self.0), keys.to_vec());
        complete(async move {
            remote.forget(&keys).await;
            // Again: what was read from Redis in between may have been the old value.
            inner.local.forget(&keys);
            inner.publish(keys);
        })
        .await;
    }
}

impl Inner {
    /// Returns the value that Redis has, if it has more than `left_min` to live, or else that of
    /// `load`.
    async fn fetch<T, E>(
        &self,
        key: &str,
        ttl: Duration,
        left_min: Duration,
        load: Pin<&mut (impl Future<Output = Result<T, E>> + Send)>,
    ) -> Result<Entry, E>
    where
        T: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let (began, ttl) = (Instant::now(), whole_seconds(ttl));
        let lookup = match &self.remote {
            Some(remote) => remote.look_up(key).await,
            None => None,
        };
        if let Some(found) = lookup.as_ref().and_then(|lookup| lookup.found.as_ref())
            && found.ttl > left_min
            && let Ok(value) = serde_json::from_slice::<T>(&found.json)
        {
            let left = found.ttl.min(ttl);
            let renewable_from = (began + left).checked_sub(ttl / 2).unwrap_or(began);
            return Ok(entry(value, found.json.len(), began + left, renewable_from));
        }
        let value = load.await?;
        let Ok(json) = serde_json::to_vec(&value) else {
            return Ok(entry(value, 0, began, began));
        };
        let expires = began + ttl;
        if let (Some(remote), Some(lookup)) = (&self.remote, lookup) {
            let left = expires.saturating_duration_since(Instant::now());
            remote.keep(key, &lookup, &json, left).await;
        }
        Ok(entry(value, json.len(), expires, began + ttl / 2))
    }

    fn publish(&self, keys: Vec<String>) {
        let invalidation = Invalidation {
            from: self.name,
            keys,
        };
        let published =
            serde_json::to_vec(&invalidation).map(|json| self.bus.try_publish(TOPIC, json));
        if let Ok(Err(error)) = published {
            tracing::debug!(%error, "an invalidation was not published");
        }
    }
}

fn entry(
    value: impl Any + Send + Sync,
    bytes: usize,
    expires: Instant,
    renewable_from: Instant,
) -> Entry {
    Entry {
        value: Arc::new(value),
        bytes,
        expires,
        renewable_from,
        is_being_renewed: Arc::new(AtomicBool::new(false)),
    }
}

fn whole_seconds(ttl: Duration) -> Duration {
    let round_up = u64::from(ttl.subsec_nanos() > 0);
    Duration::from_secs(ttl.as_secs().saturating_add(round_up)).min(TTL_MAX)
}

fn hear(event: &bus::Event, name: Uuid, local: &Local) {
    // After a gap, any key may have been invalidated unheard.
    let bus::Event::Message(message) = event else {
        local.forget_all();
        return;
    };
    match message.json::<Invalidation>() {
        Ok(received) if received.from == name => {}
        Ok(received) => local.forget(&received.keys),
        Err(error) => {
            tracing::warn!(%error, "an invalidation is not understood: everything is forgotten");
            local.forget_all();
        }
    }
}

/// Forgets everything once the subscription is established: what was loaded before may have been
/// changed unheard.
fn forget_what_was_loaded_unheard(subscription: Arc<SinkSubscription>, local: Arc<Local>) {
    if subscription.established().now_or_never().is_some() {
        return;
    }
    tokio::spawn(async move {
        if subscription.established().await.is_ok() {
            local.forget_all();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_live_is_rounded_up_and_bounded() {
        let cases = [
            (0, 0),
            (1, 1),
            (1_000, 1),
            (1_001, 2),
            (59_500, 60),
            (3_600_000, 60),
        ];
        for (millis, seconds) in cases {
            let ttl = whole_seconds(Duration::from_millis(millis));
            assert_eq!(ttl, Duration::from_secs(seconds), "{millis} ms");
        }
    }
}
