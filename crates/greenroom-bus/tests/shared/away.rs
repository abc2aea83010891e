//! Publishing and subscribing while the server is away.

use std::time::Duration;

use greenroom_bus::{Accepted, Bus, ConnectionState, PublishError, WhileAway};

use crate::kit::{is_reconnection, next, subscribe, text, within};
use crate::server::{Server, impatient, status};

/// Waits until the bus has noticed that the server is gone.
async fn away(bus: &Bus) {
    while status(bus).state != ConnectionState::Away {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn publishing_fails_at_once() {
    let mut server = Server::start();
    let bus = impatient(server.settings());
    within(bus.connected()).await;
    server.kill();
    within(away(&bus)).await;
    let error = within(bus.publish("/a", "x"))
        .await
        .expect_err("nobody is there");
    assert!(matches!(error, PublishError::Away), "{error}");
    assert!(error.is_temporary());
    let error = bus.try_publish("/a", "x").expect_err("nobody is there");
    assert!(matches!(error, PublishError::Away), "{error}");
}

#[tokio::test]
async fn publishing_queues_up_to_its_bounds_and_is_sent_in_order() {
    let mut server = Server::start();
    let settings = server
        .settings()
        .while_away(WhileAway::Queue)
        .publish_queue(5, 0);
    let bus = impatient(settings);
    let mut subscription = subscribe(&bus, "/a").await;
    server.kill();
    within(away(&bus)).await;
    for number in 0..5 {
        let accepted = within(bus.publish("/a", number.to_string())).await;
        assert_eq!(accepted.expect("there is room"), Accepted::Queued);
    }
    for error in [
        within(bus.publish("/a", "5")).await,
        bus.try_publish("/a", "5"),
    ] {
        let error = error.expect_err("five wait");
        assert!(
            matches!(error, PublishError::QueueFull { messages: 5, .. }),
            "{error}"
        );
    }
    let status = status(&bus);
    assert_eq!((status.publish_queue, status.publish_queue_bytes), (5, 5));
    server.run();
    let event = next(&mut subscription).await;
    assert!(is_reconnection(&event), "{event:?}");
    for number in 0..5 {
        assert_eq!(text(&mut subscription).await, number.to_string());
    }
}

#[tokio::test]
async fn the_queue_is_bounded_in_bytes() {
    let server = Server::prepared();
    let settings = server
        .settings()
        .while_away(WhileAway::Queue)
        .publish_queue(100, 0);
    let bus = impatient(settings);
    let most = greenroom_bus::PAYLOAD_BYTES_MAX;
    bus.try_publish("/a", vec![0; most - 1])
        .expect("there is room");
    bus.try_publish("/a", vec![0; 1])
        .expect("for one byte more");
    let error = bus.try_publish("/a", vec![0; 1]).expect_err("it is full");
    assert!(
        matches!(error, PublishError::QueueFull { bytes, .. } if bytes == most),
        "{error}"
    );
    bus.try_publish("/a", vec![])
        .expect("nothing needs no room");
}

#[tokio::test]
async fn a_bus_that_was_there_before_its_server_misses_nothing_and_tells_of_no_gap() {
    let mut server = Server::prepared();
    let settings = server.settings().while_away(WhileAway::Queue);
    let bus = impatient(settings);
    let mut subscription = bus.subscribe("/*").expect("a pattern");
    let accepted = within(bus.publish("/a", "early"))
        .await
        .expect("there is room");
    assert_eq!(accepted, Accepted::Queued);
    assert_eq!(status(&bus).state, ConnectionState::Connecting);
    server.run();
    within(subscription.established())
        .await
        .expect("established");
    assert_eq!(text(&mut subscription).await, "early");
}

#[tokio::test]
async fn who_waits_for_room_is_told_when_the_server_is_lost() {
    let server = Server::start();
    let settings = server
        .settings()
        .publish_queue(1, 0)
        .command_timeout(Duration::from_millis(300));
    let bus = impatient(settings);
    within(bus.connected()).await;
    server.freeze();
    let publish = || within(bus.publish("/a", "x"));
    let (sent, second, third) = tokio::join!(publish(), publish(), publish());
    let sent = sent.expect_err("nobody replies");
    assert!(matches!(sent, PublishError::Unknown), "{sent}");
    assert!(!sent.is_temporary(), "it may be published yet");
    for error in [second, third] {
        let error = error.expect_err("there was no room, and then no server");
        assert!(matches!(error, PublishError::Away), "{error}");
    }
    assert_eq!(status(&bus).publish_queue, 0);
}

#[tokio::test]
async fn dropping_the_bus_closes_its_connection_and_ends_its_subscriptions() {
    let server = Server::start();
    let bus = impatient(server.settings());
    let mut subscription = subscribe(&bus, "/a").await;
    assert_eq!(server.connections(), 1);
    drop(bus);
    assert!(within(subscription.recv()).await.is_none());
    within(async {
        while server.connections() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
