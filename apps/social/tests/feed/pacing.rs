//! Pacing: how often a client gets events, and the treatment of slow ones.

use std::time::Duration;

use greenroom::bus::Bus;
use social::config::FeedSettings;
use social::model::topic;

use super::world::{NEVER, World};
use crate::wait::until;

/// A pace long enough that even a slow machine does within it all that a test does at once.
const PACE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn the_first_event_comes_at_once_and_what_follows_in_one_frame() {
    let world = World::new().await;
    let settings = FeedSettings {
        pace: PACE,
        check_every: NEVER,
        ..FeedSettings::default()
    };
    let replica = world.replica_with(&Bus::in_process(), settings).await;
    let mut client = replica.client().await;
    client.watch(topic::TIMELINE, None).await;
    replica.happen(topic::TIMELINE, 1).await;
    assert_eq!(client.events().await.len(), 1);
    for _ in 0..5 {
        replica.happen(topic::TIMELINE, 10).await;
    }
    assert_eq!(client.events().await.len(), 50);
}

#[tokio::test]
async fn who_does_not_read_holds_up_nobody_and_is_caught_up() {
    const EVENTS: usize = 8_000;
    let world = World::new().await;
    let settings = FeedSettings {
        pace: Duration::from_millis(1),
        recent_max: 64,
        check_every: NEVER,
        ..FeedSettings::default()
    };
    let replica = world.replica_with(&Bus::in_process(), settings).await;
    let (mut slow, mut quick) = (replica.client().await, replica.client().await);
    slow.watch(topic::TIMELINE, None).await;
    quick.watch(topic::TIMELINE, None).await;
    for step in 1..=EVENTS / 400 {
        replica.happen(topic::TIMELINE, 400).await;
        quick.read_to(topic::TIMELINE, step as u64 * 400).await;
    }
    slow.read_to(topic::TIMELINE, EVENTS as u64).await;
    replica.happen(topic::TIMELINE, 1).await;
    slow.read_to(topic::TIMELINE, EVENTS as u64 + 1).await;
}

#[tokio::test]
async fn topics_that_nobody_watches_any_more_are_not_heard() {
    let world = World::new().await;
    let settings = FeedSettings {
        check_every: Duration::from_millis(20),
        ..FeedSettings::default()
    };
    let replica = world.replica_with(&Bus::in_process(), settings).await;
    // The subscription to the ends of sessions.
    let always = replica.bus.status().subscriptions;
    let mut client = replica.client().await;
    client.watch(topic::TIMELINE, None).await;
    assert_eq!(replica.bus.status().subscriptions, always + 1);
    drop(client);
    until(async || replica.bus.status().subscriptions <= always).await;
}
