//! Two replicas on one storage, with Redis between them.

use std::time::Duration;

use greenroom::bus::{Bus, RedisSettings, WhileAway};
use social::config::FeedSettings;
use social::model::{Id, topic};

use super::redis::Server;
use super::world::{NEVER, Replica, World};

fn bus(server: &Server) -> Bus {
    let settings = RedisSettings::new(server.url().as_str()).expect("an address");
    Bus::redis(settings.while_away(WhileAway::Queue)).expect("a bus")
}

async fn replica(world: &World, server: &Server, check_every: Duration) -> Replica {
    let settings = FeedSettings {
        check_every,
        ..FeedSettings::default()
    };
    let bus = bus(server);
    bus.connected().await;
    world.replica_with(&bus, settings).await
}

#[tokio::test]
async fn what_happens_on_one_is_heard_on_both() {
    let server = Server::start();
    let world = World::new().await;
    let (here, there) = (
        replica(&world, &server, NEVER).await,
        replica(&world, &server, NEVER).await,
    );
    let likes = topic::likes(Id::new());
    let (mut mine, mut yours) = (here.client().await, there.client().await);
    mine.watch(&likes, None).await;
    yours.watch(&likes, None).await;
    here.happen(&likes, 2).await;
    there.happen(&likes, 3).await;
    mine.read_to(&likes, 5).await;
    yours.read_to(&likes, 5).await;
}

#[tokio::test]
async fn a_replica_hears_only_what_its_clients_watch() {
    let server = Server::start();
    let world = World::new().await;
    let here = replica(&world, &server, NEVER).await;
    let (mine, other) = (topic::likes(Id::new()), topic::likes(Id::new()));
    let mut client = here.client().await;
    client.watch(&mine, None).await;
    here.happen(&other, 5).await;
    here.happen(&mine, 1).await;
    client.read_to(&mine, 1).await;
    // None at all if the connection broke meanwhile, and the storage delivered.
    let delivered = here.bus.status().delivered;
    assert!(delivered <= 1, "{delivered} events came");
}

#[tokio::test]
async fn while_redis_is_away_the_storage_tells() {
    let mut server = Server::start();
    let world = World::new().await;
    let here = replica(&world, &server, Duration::from_millis(100)).await;
    server.kill();
    let mut client = here.client().await;
    assert_eq!(client.watch(topic::TIMELINE, None).await, 0);
    here.happen(topic::TIMELINE, 3).await;
    client.read_to(topic::TIMELINE, 3).await;
}

#[tokio::test]
async fn redis_is_killed_and_comes_back_and_nobody_misses_anything() {
    const ROUNDS: u64 = 60;
    let mut server = Server::start();
    let world = World::new().await;
    let often = Duration::from_millis(200);
    let (here, there) = (
        replica(&world, &server, often).await,
        replica(&world, &server, often).await,
    );
    let topics = [
        topic::TIMELINE.to_owned(),
        topic::likes(Id::new()),
        topic::comments(Id::new()),
    ];
    let mut clients = Vec::new();
    for replica in [&here, &there, &here, &there] {
        let mut client = replica.client().await;
        for topic in &topics {
            client.watch(topic, None).await;
        }
        clients.push(client);
    }
    for round in 1..=ROUNDS {
        for topic in &topics {
            let replica = if round % 2 == 0 { &here } else { &there };
            replica.happen(topic, 5).await;
        }
        match round {
            15 | 45 => server.kill(),
            30 | 55 => server.run(),
            _ => {}
        }
        // They go on in step with the events, so that the kills fall between them.
        for client in &mut clients {
            read_all(client, &topics, round * 5).await;
        }
    }
}

async fn read_all(client: &mut super::client::Client, topics: &[String], seq: u64) {
    while topics.iter().any(|topic| client.positions[topic] < seq) {
        client.events().await;
    }
}
