//! The cache: one process, two replicas, Redis or not.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::bus::Bus;
use social::cache::Cache;
use tokio::sync::oneshot;
use url::Url;

use super::redis::Server;
use crate::wait::{found, until};

const TTL: Duration = Duration::from_mins(1);
const KEY: &str = "picture/7";

fn alone() -> Cache {
    Cache::start(&Bus::in_process(), None).expect("a cache")
}

fn with(bus: &Bus, redis: &Url) -> Cache {
    let client = redis::Client::open(redis.as_str()).expect("an address");
    Cache::start(bus, Some(client)).expect("a cache")
}

/// A cache that hears of others by Redis alone.
fn apart(server: &Server) -> Cache {
    with(&Bus::in_process(), &server.url())
}

/// Returns the cached value, or else this one.
async fn get(cache: &Cache, key: &str, otherwise: &str) -> String {
    let load = async { Ok::<_, Infallible>(otherwise.to_owned()) };
    cache
        .get_or_load(key, TTL, load)
        .await
        .expect("it cannot fail")
}

async fn forget(cache: &Cache, key: &str) {
    cache.invalidate(&[key.to_owned()]).await;
}

#[tokio::test]
async fn of_many_who_ask_one_loads() {
    let cache = alone();
    let loads = AtomicU64::new(0);
    let ask = || {
        cache.get_or_load(KEY, TTL, async {
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(loads.fetch_add(1, Ordering::Relaxed) + 1)
        })
    };
    let results = join_all((0..100).map(|_| ask())).await;
    assert!(results.iter().all(|result| *result == Ok(1)));
    assert_eq!(ask().await, Ok(1));
}

#[tokio::test]
async fn when_the_one_who_loads_leaves_another_one_does() {
    let cache = alone();
    let (begun, has_begun) = oneshot::channel();
    let first = tokio::spawn({
        let cache = cache.clone();
        async move {
            let load = async {
                let _ = begun.send(());
                std::future::pending::<Result<String, Infallible>>().await
            };
            cache.get_or_load(KEY, TTL, load).await
        }
    });
    has_begun.await.expect("it loads");
    let second = tokio::spawn({
        let cache = cache.clone();
        async move { get(&cache, KEY, "of the second").await }
    });
    tokio::task::yield_now().await;
    first.abort();
    assert_eq!(second.await.expect("it ends"), "of the second");
}

#[tokio::test]
async fn an_error_is_told_and_not_kept() {
    let cache = alone();
    let failing = || cache.get_or_load::<String, _>(KEY, TTL, async { Err("no") });
    let results = join_all([failing(), failing(), failing()]).await;
    assert!(
        results.iter().all(|result| *result == Err("no")),
        "{results:?}"
    );
    assert_eq!(get(&cache, KEY, "yes").await, "yes");
}

#[tokio::test]
async fn what_is_being_loaded_when_it_is_forgotten_is_not_kept() {
    let cache = alone();
    let (begun, has_begun) = oneshot::channel();
    let (old, value) = oneshot::channel::<String>();
    let loading = tokio::spawn({
        let cache = cache.clone();
        async move {
            let load = async {
                let _ = begun.send(());
                value.await
            };
            cache.get_or_load(KEY, TTL, load).await
        }
    });
    has_begun.await.expect("it loads");
    forget(&cache, KEY).await;
    // A later caller does not wait for the old value either.
    assert_eq!(get(&cache, KEY, "new").await, "new");
    old.send("old".to_owned()).expect("it waits");
    assert_eq!(loading.await.expect("it ends"), Ok("old".to_owned()));
    assert_eq!(get(&cache, KEY, "newer").await, "new");
}

#[tokio::test]
async fn what_has_lived_its_time_is_loaded_anew() {
    let cache = alone();
    let ttl = Duration::from_millis(1);
    let load = |value| async move { Ok::<_, Infallible>(value) };
    assert_eq!(cache.get_or_load(KEY, ttl, load(1)).await, Ok(1));
    until(async || cache.get_or_load(KEY, ttl, load(2)).await != Ok(1)).await;
}

#[tokio::test]
async fn another_type_under_the_key_is_loaded() {
    let cache = alone();
    assert_eq!(get(&cache, KEY, "text").await, "text");
    let number = cache
        .get_or_load(KEY, TTL, async { Ok::<_, Infallible>(7) })
        .await;
    assert_eq!(number, Ok(7));
}

#[tokio::test]
async fn other_replicas_forget_too() {
    let bus = Bus::in_process();
    let start = || Cache::start(&bus, None).expect("a cache");
    let (here, there) = (start(), start());
    assert_eq!(get(&there, KEY, "old").await, "old");
    assert_eq!(get(&there, "another", "kept").await, "kept");
    forget(&here, KEY).await;
    assert_eq!(get(&there, KEY, "new").await, "new");
    assert_eq!(get(&there, "another", "new").await, "kept");
}

/// Stores a value in one cache that the other finds, and returns its key. It takes a few tries
/// while they connect, and when Redis is slow.
async fn share(one: &Cache, other: &Cache) -> String {
    let mut attempts = 0..;
    found(async || {
        let key = format!("attempt/{}", attempts.next()?);
        get(one, &key, "old").await;
        (get(other, &key, "other").await == "old").then_some(key)
    })
    .await
}

#[tokio::test]
async fn replicas_share_what_they_load_and_what_they_forget() {
    let server = Server::start();
    let bus = Bus::in_process();
    let (here, there) = (with(&bus, &server.url()), with(&bus, &server.url()));
    let key = share(&here, &there).await;
    forget(&there, &key).await;
    assert_ne!(get(&here, &key, "new").await, "old");
    assert_ne!(get(&there, &key, "new").await, "old");
    let new_replica = with(&bus, &server.url());
    share(&here, &new_replica).await;
    assert_ne!(get(&new_replica, &key, "new").await, "old");
}

/// As when an album of thousands is deleted.
#[tokio::test]
async fn replicas_forget_thousands_of_keys_to_the_last() {
    let server = Server::start();
    let (here, there) = (apart(&server), apart(&server));
    let key = share(&here, &there).await;
    let others = (0..5_000).map(|number| format!("other/{number}"));
    let keys: Vec<_> = others.chain([key.clone()]).collect();
    there.invalidate(&keys).await;
    let new_replica = apart(&server);
    share(&here, &new_replica).await;
    assert_ne!(get(&new_replica, &key, "new").await, "old");
}

#[tokio::test]
async fn what_was_loaded_before_another_forgot_it_is_not_found_in_redis() {
    let server = Server::start();
    let (here, there) = (apart(&server), apart(&server));
    share(&here, &there).await;
    let (begun, has_begun) = oneshot::channel();
    let (old, value) = oneshot::channel::<String>();
    let loading = tokio::spawn({
        let here = here.clone();
        async move {
            let load = async {
                let _ = begun.send(());
                value.await
            };
            here.get_or_load(KEY, TTL, load).await
        }
    });
    has_begun.await.expect("it loads");
    forget(&there, KEY).await;
    old.send("old".to_owned()).expect("it waits");
    assert_eq!(loading.await.expect("it ends"), Ok("old".to_owned()));
    assert_eq!(get(&there, KEY, "new").await, "new");
}

#[tokio::test]
async fn without_redis_it_goes_on_and_forgets() {
    let mut server = Server::start();
    let bus = Bus::in_process();
    let (here, there) = (with(&bus, &server.url()), with(&bus, &server.url()));
    share(&here, &there).await;
    get(&here, KEY, "old").await;
    server.kill();
    forget(&here, KEY).await;
    assert_eq!(get(&here, KEY, "new").await, "new");
    assert_eq!(get(&there, KEY, "new there").await, "new there");
    // Its content may be from before, and is not trusted yet.
    server.run();
    forget(&here, "something else").await;
    assert_eq!(get(&here, KEY, "unused").await, "new");
}
