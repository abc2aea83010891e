//! Subscribers' events after the server was away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom_bus::{Bus, ConnectionState, Event, Subscription};

use crate::kit::{is_reconnection, next, publish, subscribe, text, within};
use crate::server::{Server, impatient, status};

#[tokio::test]
async fn after_a_restart_all_are_told_of_the_gap_and_hear_again() {
    let mut server = Server::start();
    let (here, there) = (impatient(server.settings()), impatient(server.settings()));
    let mut subscriptions = Vec::new();
    for pattern in ["/a", "/a", "/*", "/**"] {
        subscriptions.push(subscribe(&there, pattern).await);
    }
    within(here.connected()).await;
    publish(&here, "/a", "before").await;
    for subscription in &mut subscriptions {
        assert_eq!(text(subscription).await, "before");
    }
    server.kill();
    server.run();
    for subscription in &mut subscriptions {
        let event = next(subscription).await;
        assert!(is_reconnection(&event), "{event:?}");
    }
    let mut fresh = subscribe(&there, "/a").await;
    while here.publish("/a", "after").await.is_err() {
        // It may not have noticed yet that its old connection is dead.
        tokio::task::yield_now().await;
    }
    for subscription in subscriptions.iter_mut().chain([&mut fresh]) {
        assert_eq!(text(subscription).await, "after");
    }
    assert_eq!(
        there.status().reconnect_gaps,
        4,
        "who came after the restart has missed nothing"
    );
    let status = status(&there);
    assert_eq!(
        (status.state, status.connections_lost, status.subscribed),
        (ConnectionState::Connected, 1, Server::CHANNELS_OF_A)
    );
    assert!(status.last_error.is_some());
}

/// Publishes numbers until it is stopped, and notes the last that the server took.
pub(crate) async fn publish_numbers(
    bus: Bus,
    topic: String,
    taken: Arc<AtomicU64>,
    stop: Arc<AtomicU64>,
) -> Vec<u64> {
    let mut published = Vec::new();
    for number in 1.. {
        if stop.load(Ordering::Acquire) > 0 {
            break;
        }
        if bus
            .publish(topic.as_str(), number.to_string())
            .await
            .is_ok()
        {
            published.push(number);
            taken.store(number, Ordering::Release);
        } else {
            tokio::task::yield_now().await;
        }
    }
    published
}

/// Receives until a number of at least `last`, and notes numbers, and 0 for a gap.
pub(crate) async fn receive_until(subscription: &mut Subscription, last: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        match next(subscription).await {
            Event::Message(message) => {
                seen.push(message.json().expect("a number"));
                if seen.last() >= Some(&last) {
                    return seen;
                }
            }
            Event::Gap { .. } => seen.push(0),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_no_message_is_missing_without_a_gap() {
    let mut server = Server::start();
    let (here, there) = (impatient(server.settings()), impatient(server.settings()));
    within(here.connected()).await;
    let queue = greenroom_bus::QueueSettings::default();
    let queue = queue.events_max(10_000_000.try_into().expect("not zero"));
    let mut subscription = there.subscribe_with("/load", queue).expect("a topic");
    within(subscription.established())
        .await
        .expect("established");
    let (taken, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let load = publish_numbers(
        here,
        "/load".to_owned(),
        Arc::clone(&taken),
        Arc::clone(&stop),
    );
    let load = tokio::spawn(load);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let last = taken.load(Ordering::Acquire);
        seen.extend(receive_until(&mut subscription, last + 200).await);
        server.kill();
        server.run();
    }
    let last = taken.load(Ordering::Acquire);
    seen.extend(receive_until(&mut subscription, last + 200).await);
    stop.store(1, Ordering::Release);
    let published = load.await.expect("no panic");
    let gaps = seen.iter().filter(|number| **number == 0).count();
    assert_eq!(gaps, 3, "one for each restart");
    check_numbers(&seen, &published);
}

/// Checks that all published numbers were seen, in order and once, or that there is a gap in their
/// place.
pub(crate) fn check_numbers(seen: &[u64], published: &[u64]) {
    for pair in seen.windows(2).filter(|pair| !pair.contains(&0)) {
        assert!(pair[0] < pair[1], "in order, none twice: {pair:?}");
        let missing = published
            .iter()
            .find(|number| pair[0] < **number && **number < pair[1]);
        assert_eq!(missing, None, "between {pair:?}");
    }
}

#[tokio::test]
async fn a_server_that_stands_still_counts_as_away() {
    let server = Server::start();
    let millis = Duration::from_millis;
    let settings = server
        .settings()
        .ping_interval(millis(20))
        .command_timeout(millis(300))
        .connect_timeout(millis(300));
    let bus = impatient(settings);
    let mut subscription = subscribe(&bus, "/a").await;
    server.freeze();
    let frozen = within(async {
        loop {
            // Its reply comes when the time-out is over.
            if bus.publish("/a", "nobody reads this").await.is_err() {
                break status(&bus).state;
            }
        }
    })
    .await;
    assert_ne!(frozen, ConnectionState::Ended);
    server.thaw();
    loop {
        // Messages sent before may still come, for a server that stood still forgets nothing.
        let event = next(&mut subscription).await;
        if is_reconnection(&event) {
            break;
        }
    }
    assert_eq!(status(&bus).connections_lost, 1);
}

#[tokio::test]
async fn a_sink_is_told_of_the_gap_too() {
    let mut server = Server::start();
    let bus = impatient(server.settings());
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let sink = bus.subscribe_sink("/a", move |event| {
        sender
            .send(event)
            .map_err(|_| greenroom_bus::SinkError::Closed)
    });
    let sink = sink.expect("a topic");
    within(sink.established()).await.expect("established");
    server.kill();
    server.run();
    let event = within(events.recv()).await.expect("an event");
    assert!(is_reconnection(&event), "{event:?}");
}
