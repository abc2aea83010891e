//! The end of connections together with the session or key that has opened them.

use std::time::Duration;

use greenroom::bus::{Bus, RedisSettings, WhileAway};
use jiff::Timestamp;
use social::config::FeedSettings;
use social::feed::{Credential, Scope};
use social::model::{ApiKey, Id, UserChange, topic};

use super::client::Client;
use super::redis::Server;
use super::world::{Replica, World};

/// The close code "Unauthorized".
const UNAUTHORIZED: u16 = 3000;

/// Adds a user with two sessions, `a` and `b`; returns their end, too.
async fn user(world: &World) -> (Id, Timestamp) {
    let user = world.user().await;
    let lasts = Duration::from_hours(1);
    world.session(user, "a", lasts).await;
    (user, world.session(user, "b", lasts).await)
}

async fn watching(replica: &Replica, user: (Id, Timestamp), session: &str) -> Client {
    let (user, ends) = user;
    let mut client = replica.client_of_session(user, session, ends).await;
    client.watch(&topic::bell(user), None).await;
    client
}

#[tokio::test]
async fn a_session_takes_its_connections_with_it_and_no_others() {
    let world = World::new().await;
    let bus = Bus::in_process();
    let here = world.replica_with(&bus, FeedSettings::default()).await;
    let there = world.replica_with(&bus, FeedSettings::default()).await;
    let user = user(&world).await;
    let mut over = [
        watching(&here, user, "a").await,
        watching(&here, user, "a").await,
        watching(&there, user, "a").await,
    ];
    let mut other = watching(&here, user, "b").await;
    world.store.delete_session("a").await.expect("deleted");
    let a = Credential::Session("a".to_owned());
    here.feed.end_connections(user.0, Scope::Credential(a));
    for client in &mut over {
        assert_eq!(client.closed().await, UNAUTHORIZED);
    }
    other.watch(topic::TIMELINE, None).await;
    here.feed.end_connections(user.0, Scope::All);
    assert_eq!(other.closed().await, UNAUTHORIZED);
}

/// The connection was admitted before, and is registered nowhere when the end is published.
#[tokio::test]
async fn a_connection_that_comes_as_its_session_ends_is_closed() {
    let world = World::new().await;
    let replica = world
        .replica_with(&Bus::in_process(), FeedSettings::default())
        .await;
    let user = user(&world).await;
    world.store.delete_session("a").await.expect("deleted");
    let mut late = replica.client_of_session(user.0, "a", user.1).await;
    late.say(&serde_json::json!({"watch": {topic::TIMELINE: null}}))
        .await;
    assert_eq!(late.closed().await, UNAUTHORIZED);

    let change = UserChange {
        ends_sessions: true,
        ..UserChange::default()
    };
    world
        .store
        .update_user(user.0, change)
        .await
        .expect("changed");
    let mut late = replica.client_of_session(user.0, "b", user.1).await;
    late.say(&serde_json::json!({"watch": {topic::TIMELINE: null}}))
        .await;
    assert_eq!(late.closed().await, UNAUTHORIZED);
}

/// The publisher of the end is gone before the bus is back: the storage says it.
#[tokio::test]
async fn a_session_that_ends_while_the_bus_is_away_is_found_out() {
    let mut server = Server::start();
    let world = World::new().await;
    let settings = RedisSettings::new(server.url().as_str()).expect("an address");
    let bus = Bus::redis(settings.while_away(WhileAway::Queue)).expect("a bus");
    bus.connected().await;
    let replica = world.replica_with(&bus, FeedSettings::default()).await;
    let user = user(&world).await;
    let mut over = watching(&replica, user, "a").await;
    let mut other = watching(&replica, user, "b").await;
    server.kill();
    world.store.delete_session("a").await.expect("deleted");
    server.run();
    assert_eq!(over.closed().await, UNAUTHORIZED);
    other.watch(topic::TIMELINE, None).await;
}

/// The process that ended it died before it could tell.
#[tokio::test]
async fn a_session_whose_end_was_never_told_is_found_out() {
    let world = World::new().await;
    let settings = FeedSettings {
        sessions_check_every: Duration::from_millis(50),
        ..FeedSettings::default()
    };
    let replica = world.replica_with(&Bus::in_process(), settings).await;
    let user = user(&world).await;
    let mut over = watching(&replica, user, "a").await;
    let mut other = watching(&replica, user, "b").await;
    world.store.delete_session("a").await.expect("deleted");
    assert_eq!(over.closed().await, UNAUTHORIZED);
    other.watch(topic::TIMELINE, None).await;
}

/// A program that signs has no session; its key may go.
#[tokio::test]
async fn a_deleted_key_takes_its_connections_with_it_and_no_others() {
    let world = World::new().await;
    let bus = Bus::in_process();
    let here = world.replica_with(&bus, FeedSettings::default()).await;
    let there = world.replica_with(&bus, FeedSettings::default()).await;
    let user = user(&world).await;
    let mut keys = Vec::new();
    for name in ["gone", "kept"] {
        let key = ApiKey {
            id: Id::new(),
            user: user.0,
            name: name.to_owned(),
            secret: Vec::new(),
            created_at: Timestamp::now(),
        };
        world.store.insert_key(&key).await.expect("there is room");
        keys.push(key.id);
    }
    let watching_by = async |replica: &Replica, key| {
        let mut client = replica.client_of_key(user.0, key).await;
        client.watch(&topic::bell(user.0), None).await;
        client
    };
    let mut over = [
        watching_by(&here, keys[0]).await,
        watching_by(&there, keys[0]).await,
    ];
    let mut other = watching_by(&here, keys[1]).await;
    let mut session = watching(&here, user, "a").await;
    let deleted = world.store.delete_key(keys[0], user.0).await;
    assert!(deleted.expect("the storage is there"));
    let deleted = Scope::Credential(Credential::Key(keys[0]));
    here.feed.end_connections(user.0, deleted);
    for client in &mut over {
        assert_eq!(client.closed().await, UNAUTHORIZED);
    }
    other.watch(topic::TIMELINE, None).await;
    session.watch(topic::TIMELINE, None).await;
    here.feed.end_connections(user.0, Scope::Sessions);
    assert_eq!(session.closed().await, UNAUTHORIZED);
    other.watch(&topic::bell(user.0), None).await;
    let mut late = here.client_of_key(user.0, keys[0]).await;
    late.say(&serde_json::json!({"watch": {topic::TIMELINE: null}}))
        .await;
    assert_eq!(late.closed().await, UNAUTHORIZED);
}

/// The storage has the sessions for an hour: it is the connection that checks the clock.
#[tokio::test]
async fn a_session_that_expires_takes_its_connections_with_it() {
    let world = World::new().await;
    let replica = world
        .replica_with(&Bus::in_process(), FeedSettings::default())
        .await;
    let user = user(&world).await;
    let mut other = watching(&replica, user, "b").await;
    let soon = Timestamp::now() + Duration::from_millis(10);
    let mut over = replica.client_of_session(user.0, "a", soon).await;
    assert_eq!(over.closed().await, UNAUTHORIZED);
    other.watch(topic::TIMELINE, None).await;
}
