//! The feed and the cache of two replicas that share a cluster of Redis, or a master of Sentinels.

use std::convert::Infallible;
use std::time::Duration;

use greenroom::bus::Bus;
use social::cache::Cache;
use social::config::{FeedSettings, RedisSettings};
use social::model::topic;

use super::redis::Server;
use super::world::World;
use crate::wait::until;

const PASSWORD: &str = "secret";

fn login() -> (String, String) {
    ("default".to_owned(), PASSWORD.to_owned())
}

#[tokio::test]
async fn replicas_share_a_cluster() {
    let server = Server::start_cluster(PASSWORD);
    let redis = |sharded| RedisSettings {
        cluster: vec![server.url()],
        login: Some(login()),
        sharded,
        ..RedisSettings::default()
    };
    share(&redis(false)).await;
    share(&redis(true)).await;
}

#[tokio::test]
async fn replicas_share_what_sentinels_lead_to() {
    let master = Server::start_with(&["--requirepass", PASSWORD]);
    let sentinel = Server::start_sentinel(&master, PASSWORD);
    share(&RedisSettings {
        sentinels: vec![sentinel.url()],
        master: Some("main".to_owned()),
        login: Some(login()),
        ..RedisSettings::default()
    })
    .await;
}

/// An event of one replica reaches the other, and the cache of one forgets what the other changes.
async fn share(redis: &RedisSettings) {
    let bus = || Bus::redis(redis.bus().expect("it can work")).expect("a bus");
    let (here, there) = (bus(), bus());
    here.connected().await;
    there.connected().await;
    let world = World::new().await;
    let settings = FeedSettings {
        check_every: Duration::from_hours(1),
        ..FeedSettings::default()
    };
    let one = world.replica_with(&here, settings.clone()).await;
    let other = world.replica_with(&there, settings).await;
    let mut client = other.client().await;
    client.watch(topic::TIMELINE, None).await;
    one.happen(topic::TIMELINE, 3).await;
    client.read_to(topic::TIMELINE, 3).await;
    let cache = |bus| {
        let remote = redis.client().expect("no files are named");
        Cache::start(bus, remote).expect("a cache")
    };
    let (mine, theirs) = (cache(&here), cache(&there));
    let get = async |value: &str| {
        let load = async { Ok::<_, Infallible>(value.to_owned()) };
        let found = theirs.get_or_load("key", Duration::from_mins(1), load);
        found.await.expect("it cannot fail")
    };
    assert_eq!(get("old").await, "old");
    mine.invalidate(&["key".to_owned()]).await;
    until(async || get("new").await != "old").await;
}
