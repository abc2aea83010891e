use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{FromRedisValue, Pipeline};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use super::TTL_MAX;

/// The longest that Redis may take for one of the two steps of a request, lookup and store: 50 ms
/// together.
const STEP_MAX: Duration = Duration::from_millis(25);
/// Keys that are forgotten in one step; those of a large album are in several.
const FORGOTTEN_AT_ONCE: usize = 200;
/// The longest that Redis may take to respond to a probe.
const PROBE_MAX: Duration = Duration::from_secs(2);
/// The first and the longest delay between two probes; it doubles in between.
const PROBE_FIRST: Duration = Duration::from_millis(100);
const PROBE_LAST: Duration = Duration::from_secs(5);
/// The time that the generation of a forgotten key is remembered: longer than any load takes, and
/// than any value is stored.
const GENERATION_KEPT_SECONDS: i64 = 600;

/// The cache of all replicas, in Redis.
///
/// As in the process, a key has a generation, which is stored with the value: a value of another
/// generation than the key's present one was loaded before the key was forgotten, and is ignored.
pub(super) struct Remote {
    connection: ConnectionManager,
    runtime: Handle,
    state: Mutex<State>,
}

struct State {
    is_reachable: bool,
    /// Set if Redis has not confirmed an invalidation: its values are ignored until all that it may
    /// still hold has expired.
    is_distrusted_until: Instant,
}

/// The result of a lookup.
pub(super) struct Lookup {
    generation: u64,
    pub(super) found: Option<Found>,
}

/// A value found in Redis.
pub(super) struct Found {
    pub(super) json: Vec<u8>,
    /// The remaining time to live.
    pub(super) ttl: Duration,
}

/// The reply of Redis: generation and value, and the milliseconds that the value still lives.
type Reply = ((Option<u64>, Option<Vec<u8>>), i64);

impl Remote {
    /// Connects in the background, on the calling runtime.
    pub(super) fn start(client: redis::Client) -> anyhow::Result<Arc<Self>> {
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(PROBE_MAX))
            .set_response_timeout(Some(PROBE_MAX));
        let state = State {
            is_reachable: false,
            is_distrusted_until: Instant::now(),
        };
        let remote = Arc::new(Self {
            connection: ConnectionManager::new_lazy_with_config(client, config)?,
            runtime: Handle::current(),
            state: Mutex::new(state),
        });
        remote.probe();
        Ok(remote)
    }

    /// Looks a key up; `None` if Redis is not used at the moment.
    pub(super) async fn look_up(self: &Arc<Self>, key: &str) -> Option<Lookup> {
        if !self.is_used() {
            return None;
        }
        let mut look = redis::pipe();
        look.atomic()
            .mget(&[generation_of(key), value_of(key)])
            .pttl(value_of(key));
        let ((generation, value), ttl): Reply = self.ask(&look).await?;
        let generation = generation.unwrap_or(0);
        let found = value.and_then(|value| found(&value, generation, ttl));
        Some(Lookup { generation, found })
    }

    /// Stores a value that was loaded since [`look_up`](Self::look_up).
    pub(super) async fn keep(
        self: &Arc<Self>,
        key: &str,
        lookup: &Lookup,
        json: &[u8],
        ttl: Duration,
    ) {
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(0);
        if millis == 0 || !self.is_used() {
            return;
        }
        let mut value = format!("{}\n", lookup.generation).into_bytes();
        value.extend_from_slice(json);
        let mut keep = redis::pipe();
        keep.pset_ex(value_of(key), value, millis).ignore();
        let _kept: Option<()> = self.ask(&keep).await;
    }

    /// Forgets these keys, and what is being loaded for them. If Redis does not confirm it, it is
    /// not used for as long as an old value may be in there.
    pub(super) async fn forget(self: &Arc<Self>, keys: &[String]) {
        // Sent also while Redis is distrusted: else each invalidation would prolong that.
        let is_reachable = self.state.lock().is_reachable;
        for keys in keys.chunks(FORGOTTEN_AT_ONCE) {
            // The next ones are sent all the same: other replicas may still use Redis.
            if !is_reachable || self.ask::<()>(&forgetting(keys)).await.is_none() {
                self.state.lock().is_distrusted_until = Instant::now() + TTL_MAX;
            }
        }
    }

    /// Queries Redis within [`STEP_MAX`]; without a reply it is not used until a probe succeeds.
    async fn ask<T: FromRedisValue>(self: &Arc<Self>, query: &Pipeline) -> Option<T> {
        let mut connection = self.connection.clone();
        let error = match timeout(STEP_MAX, query.query_async(&mut connection)).await {
            Ok(Ok(reply)) => return Some(reply),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no response within {STEP_MAX:?}"),
        };
        self.leave(&error);
        None
    }

    /// Stops using Redis until a probe succeeds.
    fn leave(self: &Arc<Self>, error: &str) {
        let was_reachable = std::mem::replace(&mut self.state.lock().is_reachable, false);
        if was_reachable {
            tracing::warn!(error, "the cache goes on without Redis");
            self.probe();
        }
    }

    fn is_used(&self) -> bool {
        let state = self.state.lock();
        state.is_reachable && state.is_distrusted_until <= Instant::now()
    }

    fn probe(self: &Arc<Self>) {
        let probing = probe(Arc::downgrade(self));
        self.runtime.spawn(probing);
    }

    async fn responds(&self) -> bool {
        let mut connection = self.connection.clone();
        let mut ping = redis::pipe();
        ping.ping().ignore();
        matches!(
            timeout(PROBE_MAX, ping.query_async::<()>(&mut connection)).await,
            Ok(Ok(()))
        )
    }
}

/// Probes until Redis responds. There is one such task at a time: while Redis is not reachable.
async fn probe(remote: Weak<Remote>) {
    let mut rest = PROBE_FIRST;
    while let Some(remote) = remote.upgrade() {
        if remote.responds().await {
            remote.state.lock().is_reachable = true;
            tracing::info!("the cache uses Redis");
            return;
        }
        drop(remote);
        sleep(rest).await;
        rest = PROBE_LAST.min(2 * rest);
    }
}

fn found(value: &[u8], generation: u64, ttl: i64) -> Option<Found> {
    let end = value.iter().position(|&byte| byte == b'\n')?;
    let (of, json) = (&value[..end], &value[end + 1..]);
    if of != generation.to_string().as_bytes() {
        return None;
    }
    let ttl = Duration::from_millis(u64::try_from(ttl).ok()?);
    Some(Found {
        json: json.to_vec(),
        ttl,
    })
}

fn forgetting(keys: &[String]) -> Pipeline {
    let mut forget = redis::pipe();
    for key in keys {
        forget.incr(generation_of(key), 1).ignore();
        forget
            .expire(generation_of(key), GENERATION_KEPT_SECONDS)
            .ignore();
        forget.del(value_of(key)).ignore();
    }
    forget
}

/// The braces put both keys of an entry into one slot of a cluster.
fn generation_of(key: &str) -> String {
    format!("social:cache:{{{key}}}:generation")
}

fn value_of(key: &str) -> String {
    format!("social:cache:{{{key}}}:value")
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Remote").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_generation_is_none() {
        let json =
            |value: &[u8], generation| found(value, generation, 5_000).map(|found| found.json);
        assert_eq!(json(b"7\n{}", 7), Some(b"{}".to_vec()));
        assert_eq!(json(b"7\n{}", 8), None);
        assert_eq!(json(b"70\n{}", 7), None);
        assert_eq!(json(b"{}", 7), None);
    }
}
