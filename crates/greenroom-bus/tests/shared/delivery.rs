//! Publishing and subscribing while the server is there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use greenroom_bus::{Accepted, Event, GapCause};
use tokio::runtime::Handle;

use crate::kit::{DEADLINE, next, publish, subscribe, text, within};
use crate::server::{Server, impatient, status};

#[tokio::test]
async fn every_subscription_hears_a_message_once_also_on_the_bus_that_published_it() {
    let server = Server::start();
    let (here, there) = (server.bus(), server.bus());
    let mut subscriptions = Vec::new();
    for bus in [&here, &there] {
        for pattern in [
            "/picture/42/likes",
            "/picture/42/likes",
            "/picture/*/likes",
            "/picture/**",
            "/**",
        ] {
            subscriptions.push(subscribe(bus, pattern).await);
        }
    }
    for round in 0..3 {
        let accepted = within(here.publish("/picture/42/likes", round.to_string())).await;
        assert_eq!(accepted.expect("published"), Accepted::Published);
    }
    for subscription in &mut subscriptions {
        for round in 0..3 {
            assert_eq!(
                text(subscription).await,
                round.to_string(),
                "{subscription:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_slow_subscriber_misses_alone() {
    const MESSAGES: u64 = 3_000;
    let server = Server::start();
    let (here, there) = (server.bus(), server.bus());
    within(here.connected()).await;
    let mut slow = subscribe(&there, "/a").await;
    let mut quick = subscribe(&there, "/a").await;
    let publisher = tokio::spawn(async move {
        for number in 0..MESSAGES {
            publish(&here, "/a", number).await;
        }
        here
    });
    for number in 0..MESSAGES {
        assert_eq!(text(&mut quick).await, number.to_string());
    }
    let gap = next(&mut slow).await;
    let missed = MESSAGES - 1_024;
    assert!(
        matches!(
            gap,
            Event::Gap { missed: Some(found), cause: GapCause::Overflow } if found == missed
        ),
        "{gap:?}"
    );
    for number in missed..MESSAGES {
        assert_eq!(text(&mut slow).await, number.to_string());
    }
    publisher.await.expect("no panic");
}

#[tokio::test]
async fn many_publish_at_once_and_nothing_is_lost_or_out_of_order() {
    const EACH: usize = 200;
    let server = Server::start();
    let settings = server.settings().publish_queue(16, 0);
    let bus = impatient(settings);
    let queue =
        greenroom_bus::QueueSettings::default().events_max(100_000.try_into().expect("not zero"));
    let mut all = bus.subscribe_with("/*", queue).expect("a pattern");
    within(all.established()).await.expect("established");
    let publishers: Vec<_> = (0..50)
        .map(|publisher| {
            let bus = bus.clone();
            tokio::spawn(async move {
                for number in 0..EACH {
                    publish(&bus, &format!("/{publisher}"), number).await;
                }
            })
        })
        .collect();
    let mut due = [0; 50];
    for _ in 0..50 * EACH {
        let event = next(&mut all).await;
        let message = event.message().expect("no gap");
        let publisher: usize = message.topic().as_str()[1..].parse().expect("a number");
        assert_eq!(message.json::<usize>().expect("a number"), due[publisher]);
        due[publisher] += 1;
    }
    for publisher in publishers {
        publisher.await.expect("all are published");
    }
    assert_eq!(status(&bus).publish_queue, 0);
}

#[test]
fn a_bus_needs_no_runtime_and_sends_what_waits_when_it_is_dropped() {
    const MESSAGES: u64 = 1_000;
    let server = Server::start();
    let listener = server.bus();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let mut all = runtime.block_on(subscribe(&listener, "/a"));
    let bus = server.bus();
    runtime.block_on(within(bus.connected()));
    for number in 0..MESSAGES {
        let accepted = bus
            .try_publish("/a", number.to_string())
            .expect("there is room");
        assert_eq!(accepted, Accepted::Queued);
    }
    drop(bus);
    runtime.block_on(async {
        for number in 0..MESSAGES {
            assert_eq!(text(&mut all).await, number.to_string());
        }
    });
}

/// Subscribes and leaves, faster than the server can be told.
fn come_and_go(bus: &greenroom_bus::Bus, is_over: &AtomicBool) {
    let mut held = VecDeque::new();
    let topics = (0..10_000).map(|number| format!("/come/{number}"));
    for topic in topics.cycle() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        held.push_back(bus.subscribe(&topic).expect("a topic"));
        if held.len() > 64 {
            held.pop_front();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_are_published_while_subscriptions_come_and_go_all_the_time() {
    let server = Server::start();
    let bus = impatient(server.settings());
    let is_over = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        // From before there is a connection on.
        scope.spawn(|| come_and_go(&bus, &is_over));
        let publishing = async {
            within(bus.connected()).await;
            for number in 0..20 {
                let publishing = bus.publish("/a", number.to_string());
                tokio::time::timeout(DEADLINE, publishing).await??;
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        let outcome = tokio::task::block_in_place(|| Handle::current().block_on(publishing));
        is_over.store(true, Ordering::Relaxed);
        outcome.map_err(|error| error.to_string())
    });
    assert_eq!(outcome, Ok(()));
}
