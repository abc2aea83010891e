//! The cache: values that are loaded before anybody waits for them.

use std::convert::Infallible;
use std::ops::RangeFrom;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use greenroom::bus::Bus;
use social::cache::Cache;
use tokio::sync::{Semaphore, oneshot};

use super::redis::Server;
use crate::wait::{found, until};

const TTL: Duration = Duration::from_secs(2);

/// Loads that give the numbers from 1 on: the first at once, the others when they may.
#[derive(Clone)]
struct Loads {
    begun: Arc<AtomicU64>,
    permits: Arc<Semaphore>,
}

impl Loads {
    fn new() -> Self {
        Self {
            begun: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
        }
    }

    fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    fn let_them_end(&self) {
        self.permits.add_permits(Semaphore::MAX_PERMITS);
    }

    async fn load(self) -> Result<u64, Infallible> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        if number > 1 {
            let permit = self.permits.acquire().await;
            permit.expect("it is never closed").forget();
        }
        Ok(number)
    }
}

async fn ask(cache: &Cache, key: &str, loads: &Loads) -> u64 {
    let load = || loads.clone().load();
    let Ok(value) = cache.get_or_renew(key, TTL, load).await;
    value
}

/// Returns a key whose value is loaded anew at this moment, and its loads. Values that were not
/// asked for between the half and the whole of their time, as the machine was busy, are left, and
/// those that `is_shared` says are not.
async fn renewing(
    cache: &Cache,
    attempts: &mut RangeFrom<u32>,
    is_shared: impl AsyncFn(&str) -> bool,
) -> (String, Loads) {
    found(async || {
        let key = format!("attempt/{}", attempts.next()?);
        let loads = Loads::new();
        assert_eq!(ask(cache, &key, &loads).await, 1);
        if !is_shared(&key).await {
            return None;
        }
        let is_in_time = found(async || {
            let is_renewed = loads.begun() == 2;
            match ask(cache, &key, &loads).now_or_never() {
                Some(value) => {
                    assert_eq!(value, 1, "no other is there");
                    is_renewed.then_some(true)
                }
                None => Some(false),
            }
        });
        is_in_time.await.then_some((key, loads))
    })
    .await
}

#[tokio::test]
async fn a_value_is_returned_until_the_next_one_is_loaded() {
    let cache = Cache::start(&Bus::in_process(), None).expect("a cache");
    let mut attempts = 0..;
    until(async || {
        let (key, loads) = renewing(&cache, &mut attempts, async |_| true).await;
        loads.let_them_end();
        // Nothing is waited for, so the first other value is the one that was loaded anew; if its
        // time was over before, the caller would have to load one.
        let next = found(async || match ask(&cache, &key, &loads).now_or_never() {
            Some(1) => None,
            other => Some(other),
        });
        next.await == Some(2)
    })
    .await;
}

#[tokio::test]
async fn a_value_that_redis_has_had_for_half_of_its_time_is_loaded_anew() {
    let server = Server::start();
    let start = || {
        let client = redis::Client::open(server.url().as_str()).expect("an address");
        Cache::start(&Bus::in_process(), Some(client)).expect("a cache")
    };
    let (here, there) = (start(), start());
    let has_one = async |key: &str| {
        let other = async { Ok::<u64, Infallible>(100) };
        there.get_or_load(key, TTL, other).await == Ok(1)
    };
    renewing(&here, &mut (0..), has_one).await;
}

#[tokio::test]
async fn what_is_loaded_anew_when_it_is_forgotten_is_not_kept() {
    let cache = Cache::start(&Bus::in_process(), None).expect("a cache");
    let (key, loads) = renewing(&cache, &mut (0..), async |_| true).await;
    cache.invalidate(std::slice::from_ref(&key)).await;
    let load = || async { Ok::<u64, Infallible>(100) };
    let ask = || cache.get_or_renew(&key, Duration::from_mins(1), load);
    assert_eq!(ask().await, Ok(100));
    loads.let_them_end();
    // It stores what it has, in the same poll.
    until(async || Arc::strong_count(&loads.begun) == 1).await;
    assert_eq!(ask().await, Ok(100));
}

#[tokio::test]
async fn who_asks_for_what_is_loaded_ahead_gets_it() {
    let cache = Cache::start(&Bus::in_process(), None).expect("a cache");
    let (begun, has_begun) = oneshot::channel();
    let (value, loaded) = oneshot::channel::<&'static str>();
    let load = async move {
        let _ = begun.send(());
        loaded.await.map(str::to_owned)
    };
    cache.load_ahead("key", Duration::from_mins(1), load);
    has_begun.await.expect("it loads although nobody asks");
    value.send("ahead").expect("it waits");
    let other = async { Ok::<_, Infallible>("other".to_owned()) };
    let asked = cache.get_or_load("key", Duration::from_mins(1), other);
    assert_eq!(asked.await, Ok("ahead".to_owned()));
}
