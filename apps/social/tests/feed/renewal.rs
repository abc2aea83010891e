//! The cache: values that are loaded before anybody waits for them.

use std::convert::Infallible;
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
/// asked for between the half and the whole of their time, as the machine was busy, are left.
async fn renewing(cache: &Cache) -> (String, Loads) {
    let mut attempts = 0..;
    found(async || {
        let key = format!("attempt/{}", attempts.next()?);
        let loads = Loads::new();
        assert_eq!(ask(cache, &key, &loads).await, 1);
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

async fn nobody_waits_for_the_next_value(cache: Cache) {
    let (key, loads) = renewing(&cache).await;
    loads.let_them_end();
    until(async || ask(&cache, &key, &loads).await > 1).await;
}

#[tokio::test]
async fn a_value_is_returned_while_the_next_one_is_loaded() {
    let cache = Cache::start(&Bus::in_process(), None).expect("a cache");
    nobody_waits_for_the_next_value(cache).await;
}

#[tokio::test]
async fn a_value_that_redis_has_had_for_half_of_its_time_is_loaded_anew() {
    let server = Server::start();
    let client = redis::Client::open(server.url().as_str()).expect("an address");
    let cache = Cache::start(&Bus::in_process(), Some(client)).expect("a cache");
    nobody_waits_for_the_next_value(cache).await;
}

#[tokio::test]
async fn what_is_loaded_anew_when_it_is_forgotten_is_not_kept() {
    let cache = Cache::start(&Bus::in_process(), None).expect("a cache");
    let (key, loads) = renewing(&cache).await;
    cache.invalidate(std::slice::from_ref(&key)).await;
    let load = || async { Ok::<u64, Infallible>(100) };
    let ask = || cache.get_or_renew(&key, Duration::from_mins(1), load);
    assert_eq!(ask().await, Ok(100));
    loads.let_them_end();
    // The permit of the load comes back when it has stored what it has.
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
