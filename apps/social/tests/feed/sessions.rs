//! Connections end with the session that has opened them.

use std::time::Duration;

use greenroom::bus::{Bus, RedisSettings, WhileAway};
use jiff::Timestamp;
use social::config::FeedSettings;
use social::model::{Id, Session, UserChange, topic};

use super::client::Client;
use super::redis::Server;
use super::world::{Replica, World};

/// "Unauthorized".
const UNAUTHORIZED: u16 = 3000;

/// A user with two sessions, `a` and `b`.
async fn user(world: &World) -> Id {
    let user = world.user().await;
    for token in ["a", "b"] {
        let session = Session {
            token_hash: token.to_owned(),
            user,
            csrf: String::new(),
            expires_at: Timestamp::now() + Duration::from_hours(1),
            generation: 0,
        };
        let kept = world.store.insert_session(&session).await;
        kept.expect("there is room for a session");
    }
    user
}

async fn watching(replica: &Replica, user: Id, session: &str) -> Client {
    let mut client = replica.client_of_session(user, session).await;
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
    here.feed.end_sessions(user, Some("a".to_owned()));
    for client in &mut over {
        assert_eq!(client.closed().await, UNAUTHORIZED);
    }
    other.watch(topic::TIMELINE, None).await;
    here.feed.end_sessions(user, None);
    assert_eq!(other.closed().await, UNAUTHORIZED);
}

/// It was let in before, and is found nowhere when the end is told.
#[tokio::test]
async fn a_connection_that_comes_as_its_session_ends_is_closed() {
    let world = World::new().await;
    let replica = world
        .replica_with(&Bus::in_process(), FeedSettings::default())
        .await;
    let user = user(&world).await;
    world.store.delete_session("a").await.expect("deleted");
    let mut late = replica.client_of_session(user, "a").await;
    late.say(&serde_json::json!({"watch": {topic::TIMELINE: null}}))
        .await;
    assert_eq!(late.closed().await, UNAUTHORIZED);

    let change = UserChange {
        ends_sessions: true,
        ..UserChange::default()
    };
    world
        .store
        .update_user(user, change)
        .await
        .expect("changed");
    let mut late = replica.client_of_session(user, "b").await;
    late.say(&serde_json::json!({"watch": {topic::TIMELINE: null}}))
        .await;
    assert_eq!(late.closed().await, UNAUTHORIZED);
}

/// Whoever told of it is gone before the bus is back: the storage says it.
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
