//! Durable messages.

use greenroom_actor::ActorSystem;
use greenroom_cluster::Remote;

use crate::counter::{
    Counter, CounterMessages, CounterRemoteMessages, caller, host, node, server, spawn,
};

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
