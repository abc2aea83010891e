//! Catching up from a position to the present, without loss or repetition.

use std::time::Duration;

use greenroom::bus::Bus;
use jiff::Timestamp;
use serde_json::json;
use social::config::FeedSettings;
use social::model::{Id, topic};
use social::store::Retention;

use super::client::ServerMessage;
use super::world::{NEVER, World};

#[tokio::test]
async fn who_begins_now_gets_what_happens_from_now_on() {
    let world = World::new().await;
    let replica = world.replica().await;
    replica.happen(topic::TIMELINE, 3).await;
    let mut client = replica.client().await;
    assert_eq!(client.watch(topic::TIMELINE, None).await, 3);
    replica.happen(topic::TIMELINE, 1).await;
    let events = client.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].seq, events[0].total), (4, 4));
    assert_eq!(events[0].body, json!({"by": "ada", "liked": true}));
}

#[tokio::test]
async fn who_comes_back_gets_what_was_missed_and_then_the_present() {
    let world = World::new().await;
    let replica = world.replica().await;
    replica.happen(topic::TIMELINE, 5).await;
    let mut client = replica.client().await;
    assert_eq!(client.watch(topic::TIMELINE, Some(2)).await, 2);
    client.read_to(topic::TIMELINE, 5).await;
    replica.happen(topic::TIMELINE, 2).await;
    client.read_to(topic::TIMELINE, 7).await;

    let mut other = replica.client().await;
    assert_eq!(other.watch(topic::TIMELINE, Some(7)).await, 7);
    replica.happen(topic::TIMELINE, 1).await;
    other.read_to(topic::TIMELINE, 8).await;
    client.read_to(topic::TIMELINE, 8).await;
}

#[tokio::test]
async fn several_topics_come_each_in_its_order() {
    let world = World::new().await;
    let replica = world.replica().await;
    let (likes, talk) = (topic::likes(Id::new()), topic::comments(Id::new()));
    replica.happen(&likes, 200).await;
    replica.happen(&talk, 300).await;
    let mut client = replica.client().await;
    client
        .say(&json!({"watch": {&likes: 0, &talk: 100, topic::TIMELINE: null}}))
        .await;
    while client.positions.len() < 3
        || client.positions[&likes] < 200
        || client.positions[&talk] < 300
    {
        client.next_message().await;
    }
    replica.happen(topic::TIMELINE, 1).await;
    client.read_to(topic::TIMELINE, 1).await;
}

#[tokio::test]
async fn far_behind_what_memory_holds_the_storage_has_it() {
    let world = World::new().await;
    let settings = FeedSettings {
        recent_max: 16,
        pace: Duration::ZERO,
        check_every: NEVER,
        ..FeedSettings::default()
    };
    let replica = world.replica_with(&Bus::in_process(), settings).await;
    replica.happen(topic::TIMELINE, 1_000).await;
    let mut client = replica.client().await;
    client.watch(topic::TIMELINE, Some(0)).await;
    let go_on = async {
        for _ in 0..100 {
            replica.happen(topic::TIMELINE, 10).await;
        }
    };
    let read = client.read_to(topic::TIMELINE, 2_000);
    tokio::join!(go_on, read);
}

#[tokio::test]
async fn a_topic_can_be_left_and_watched_from_elsewhere() {
    let world = World::new().await;
    let replica = world.replica().await;
    let likes = topic::likes(Id::new());
    replica.happen(topic::TIMELINE, 4).await;
    let mut client = replica.client().await;
    client.watch(topic::TIMELINE, None).await;
    assert_eq!(client.watch(topic::TIMELINE, Some(1)).await, 1);
    client.read_to(topic::TIMELINE, 4).await;

    client
        .say(&json!({"unwatch": [topic::TIMELINE, "/never/watched"]}))
        .await;
    client.watch(&likes, None).await;
    replica.happen(topic::TIMELINE, 1).await;
    replica.happen(&likes, 1).await;
    let events = client.events().await;
    assert_eq!(events.len(), 1, "nothing of what it has left: {events:?}");
    assert_eq!(events[0].topic, likes);
    assert_eq!(client.watch(topic::TIMELINE, Some(4)).await, 4);
    client.read_to(topic::TIMELINE, 5).await;
}

#[tokio::test]
async fn a_position_that_is_none_is_reset() {
    let world = World::new().await;
    let replica = world.replica().await;
    replica.happen(topic::TIMELINE, 50).await;
    let retention = Retention {
        events_max: 10,
        events_for: Duration::ZERO,
        tasks_for: NEVER,
    };
    let later = Timestamp::now() + Duration::from_secs(1);
    world.store.prune(later, retention).await.expect("pruned");
    for position in [3, 51, u64::MAX] {
        let mut client = replica.client().await;
        client
            .say(&json!({"watch": {topic::TIMELINE: position}}))
            .await;
        let received = client.next_message().await;
        let ServerMessage::Reset(ends) = received else {
            panic!("not reset: {received:?}")
        };
        assert_eq!(ends[topic::TIMELINE], 50);
    }
    let mut client = replica.client().await;
    client.say(&json!({"watch": {topic::TIMELINE: 51}})).await;
    client.next_message().await;
    replica.happen(topic::TIMELINE, 1).await;
    client.read_to(topic::TIMELINE, 51).await;
}

#[tokio::test]
async fn what_was_stored_and_never_published_arrives() {
    let world = World::new().await;
    let settings = FeedSettings {
        check_every: Duration::from_millis(50),
        recent_max: 16,
        ..FeedSettings::default()
    };
    let replica = world.replica_with(&Bus::in_process(), settings).await;
    let mut client = replica.client().await;
    client.watch(topic::TIMELINE, None).await;
    world.store(topic::TIMELINE, 3).await;
    client.read_to(topic::TIMELINE, 3).await;
    world.store(topic::TIMELINE, 1_000).await;
    client.read_to(topic::TIMELINE, 1_003).await;
}

#[tokio::test]
async fn what_is_missing_before_an_event_is_read_at_once() {
    let world = World::new().await;
    let replica = world.replica().await;
    let mut client = replica.client().await;
    client.watch(topic::TIMELINE, None).await;
    world.store(topic::TIMELINE, 2).await;
    replica.happen(topic::TIMELINE, 1).await;
    client.read_to(topic::TIMELINE, 3).await;
}

#[tokio::test]
async fn what_overtook_on_the_way_is_put_in_order() {
    let world = World::new().await;
    let replica = world.replica().await;
    let mut client = replica.client().await;
    client.watch(topic::TIMELINE, None).await;
    let mut events = world.store(topic::TIMELINE, 20).await;
    events.reverse();
    events.extend(events.clone());
    replica.feed.publish(&events).await;
    client.read_to(topic::TIMELINE, 20).await;
}

#[tokio::test]
async fn who_has_heard_of_an_event_before_the_bus_gets_it_no_more() {
    let world = World::new().await;
    let replica = world.replica().await;
    let mut first = replica.client().await;
    first.watch(topic::TIMELINE, None).await;
    let events = world.store(topic::TIMELINE, 2).await;
    let mut client = replica.client().await;
    assert_eq!(client.watch(topic::TIMELINE, Some(2)).await, 2);
    replica.feed.publish(&events).await;
    replica.happen(topic::TIMELINE, 1).await;
    client.read_to(topic::TIMELINE, 3).await;
    first.read_to(topic::TIMELINE, 3).await;
}
