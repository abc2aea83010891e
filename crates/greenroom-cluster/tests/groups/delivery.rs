//! Durable messages.

use greenroom_actor::ActorSystem;
use greenroom_cluster::{Cluster, Delivery, PublishSettings, Remote, RemoteError};

use crate::counter::{
    BEGUN, Counter, CounterMessages, CounterRemoteMessages, GATES, caller, host, node, server,
    spawn,
};

/// The gate of the test of what is fetched, which knows of no other.
const GATE: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_message_waits_for_its_receiver_and_survives_the_server() {
    let mut server = server();
    let sender = node(&server).await;
    let counters: Remote<Counter> = sender.actor("counters").expect("a name");
    let delivery = counters
        .add(5)
        .id("a")
        .deliver()
        .await
        .expect("it is taken");
    assert!(!delivery.is_duplicate);
    let again = counters
        .add(5)
        .id("a")
        .deliver()
        .await
        .expect("it is known");
    assert!(again.is_duplicate);
    server.kill();
    server.run();
    let host = host(&server, "one").await;
    while host.actor.add(0).ask().await.expect("a reply") != 5 {
        tokio::task::yield_now().await;
    }
}

/// Sends messages of which some have the same id, and adds up to 1 + 10 + 100.
async fn send_with_same_ids(cluster: &Cluster) {
    let [one, other] = ["counters", "others"].map(|group| {
        let counters = cluster.actor::<Counter>(group);
        counters.expect("a name")
    });
    let is_duplicate = |delivery: Result<Delivery, _>| delivery.expect("it is taken").is_duplicate;
    assert!(!is_duplicate(one.add(1).id("17").deliver().await));
    assert!(is_duplicate(one.add(1).id("17").deliver().await));
    // Another receiver, another message, and ids that are no words.
    assert!(!is_duplicate(other.add(10).id("17").deliver().await));
    assert!(!is_duplicate(other.name().id("17").deliver().await));
    assert!(!is_duplicate(
        other.add(100).id("17\r\nX: y").deliver().await
    ));
    assert!(is_duplicate(
        other.add(100).id("17\r\nX: y").deliver().await
    ));
    for id in [String::new(), "x".repeat(129)] {
        let refused = one.add(1000).id(id).deliver().await;
        assert!(matches!(refused, Err(RemoteError::Name(_))), "{refused:?}");
    }
}

/// Publishes counters in both groups, and waits until they have got all that was sent.
async fn assert_all_are_handled(cluster: &Cluster) {
    let system = ActorSystem::new().expect("a system");
    let counters = spawn(&system, "both");
    let published = ["counters", "others"].map(|group| cluster.publish(group, &counters));
    for publication in &published {
        let publication = publication.as_ref().expect("it is new");
        publication.announced().await;
    }
    while counters.add(0).ask().await.expect("a reply") < 111 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_one_of_its_receiver_and_its_message() {
    let server = server();
    let node = node(&server).await;
    send_with_same_ids(&node).await;
    assert_all_are_handled(&node).await;
}

#[tokio::test(start_paused = true)]
async fn an_id_is_one_of_its_receiver_and_its_message_in_a_process_alone() {
    let alone = Cluster::local();
    send_with_same_ids(&alone).await;
    assert_all_are_handled(&alone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_messages_are_fetched_than_are_handled() {
    let server = server();
    let (node, system) = (node(&server).await, ActorSystem::new().expect("a system"));
    let actor = spawn(&system, "slow");
    let counters: Remote<Counter> = node.actor("counters").expect("a name");
    for _ in 0..8 {
        counters.wait(GATE).deliver().await.expect("it is taken");
    }
    let settings = PublishSettings::default().durable_in_flight_max(2);
    let _published = node.publish_with("counters", &actor, settings);
    BEGUN[GATE].acquire().await.expect("it is open").forget();
    let client = async_nats::connect(server.url()).await;
    let jetstream = async_nats::jetstream::new(client.expect("it connects"));
    let stream = jetstream.get_stream("greenroom_durable").await;
    let stream = stream.expect("it is there");
    // One is handled and the other is behind it. A third would be here within some round trips.
    for _ in 0..50 {
        let consumer = stream.consumer_info("group==counters==counter=v1").await;
        let under_way = consumer.expect("it is there").num_ack_pending;
        assert!(under_way <= 2, "{under_way}");
    }
    GATES[GATE].add_permits(8);
    BEGUN[GATE]
        .acquire_many(7)
        .await
        .expect("it is open")
        .forget();
    let mut stream = stream;
    while stream.info().await.expect("it is there").state.messages > 0 {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_message_that_fails_comes_again() {
    let server = server();
    let host = host(&server, "one").await;
    let (_node, counters) = caller(&server).await;
    let taken = counters.succeed_at(1).deliver().await;
    taken.expect("it is taken");
    while host.actor.add(0).ask().await.expect("a reply") < 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_durable_message_goes_to_one_member() {
    let server = server();
    let one = host(&server, "one").await;
    let two = host(&server, "two").await;
    let (_node, counters) = caller(&server).await;
    for _ in 0..100 {
        counters.add(1).deliver().await.expect("it is taken");
    }
    let sum = async || {
        let first = one.actor.add(0).ask().await.expect("a reply");
        first + two.actor.add(0).ask().await.expect("a reply")
    };
    while sum().await < 100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(sum().await, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_member_hands_on_what_it_had_not_handled() {
    let server = server();
    let one = host(&server, "one").await;
    let (_node, counters) = caller(&server).await;
    counters.add(1).deliver().await.expect("it is taken");
    while one.actor.add(0).ask().await.expect("a reply") < 1 {
        tokio::task::yield_now().await;
    }
    drop(one);
    counters.add(1).deliver().await.expect("it is taken");
    let system = ActorSystem::new().expect("a system");
    let (cluster, actor) = (node(&server).await, spawn(&system, "two"));
    let _published = cluster.publish("counters", &actor).expect("it is new");
    while actor.add(0).ask().await.expect("a reply") < 1 {
        tokio::task::yield_now().await;
    }
}
