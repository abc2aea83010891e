//! Messages that a bus missed, from the stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use greenroom_bus::{
    Accepted, Bus, ConnectionState, Event, PublishError, QueueSettings, ReplaySettings,
    ReplayStatus, SinkSubscription, WhileAway,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::gaps::{publish_numbers, receive_until};
use crate::kit::{
    failure, is_reconnection, next, publish, publish_at_last, subscribe, text, until, within,
};
use crate::server::{Server, impatient, replay, status};
use crate::wire::Wire;

fn replayed(bus: &Bus) -> ReplayStatus {
    let nats = bus.status().nats.expect("it is there");
    nats.replay.expect("it is set")
}

async fn streams(server: &Server) -> async_nats::jetstream::Context {
    let client = async_nats::connect(server.url()).await.expect("it runs");
    async_nats::jetstream::new(client)
}

/// Subscribes a sink that holds up the bus' thread at every event, until the returned sender is
/// dropped.
async fn holding(
    bus: &Bus,
    topic: &str,
) -> (SinkSubscription, UnboundedReceiver<Event>, mpsc::Sender<()>) {
    let (seen, events) = unbounded_channel();
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let sink = move |event| {
        let _ = seen.send(event);
        let _ = released.lock().expect("no panic").recv();
        Ok(())
    };
    let subscription = bus.subscribe_sink(topic, sink).expect("a topic");
    within(subscription.established())
        .await
        .expect("established");
    (subscription, events, release)
}

#[tokio::test]
async fn messages_are_heard_once_by_name_and_by_pattern_and_kept_in_the_stream() {
    let server = Server::start_storing();
    let (here, there) = (impatient(server.replaying()), impatient(server.replaying()));
    let mut subscriptions = Vec::new();
    for bus in [&here, &there] {
        for pattern in ["/picture/42/likes", "/picture/*/likes", "/**"] {
            subscriptions.push(subscribe(bus, pattern).await);
        }
    }
    for number in 0..3 {
        publish(&here, "/picture/42/likes", number).await;
    }
    for subscription in &mut subscriptions {
        for number in 0..3 {
            assert_eq!(text(subscription).await, number.to_string());
        }
    }
    until(|| replayed(&there).sequence == Some(3)).await;
    assert_eq!(replayed(&there).replayed, 0);
    // Those who come later do not get what was before.
    let late = impatient(server.replaying());
    let mut subscription = subscribe(&late, "/**").await;
    publish(&here, "/a", "later").await;
    assert_eq!(text(&mut subscription).await, "later");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_every_message_comes_once_and_in_order() {
    let mut server = Server::start_storing();
    let (here, there) = (impatient(server.replaying()), impatient(server.replaying()));
    within(here.connected()).await;
    let queue = QueueSettings::default().events_max(10_000_000.try_into().expect("not zero"));
    let mut subscription = there.subscribe_with("/load", queue).expect("a topic");
    within(subscription.established())
        .await
        .expect("established");
    let (taken, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let topic = "/load".to_owned();
    let load = publish_numbers(here, topic, Arc::clone(&taken), Arc::clone(&stop));
    let load = tokio::spawn(load);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let last = taken.load(Ordering::Acquire);
        seen.extend(receive_until(&mut subscription, last + 50).await);
        server.kill();
        server.run();
    }
    let last = taken.load(Ordering::Acquire);
    seen.extend(receive_until(&mut subscription, last + 50).await);
    stop.store(1, Ordering::Release);
    let published = load.await.expect("no panic");
    assert!(!seen.contains(&0), "no gap: the stream has them all");
    assert!(seen.is_sorted_by(|one, next| one < next), "in order, once");
    let missing: Vec<_> = published
        .iter()
        .filter(|number| **number <= *seen.last().expect("many"))
        .filter(|number| seen.binary_search(number).is_err())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(status(&there).connections_lost >= 3);
}

#[tokio::test]
async fn what_others_published_meanwhile_is_replayed_without_a_gap() {
    let server = Server::start_storing();
    let mut wire = Wire::new(&server).await;
    let (here, there) = (
        impatient(server.replaying()),
        impatient(wire.settings().replay(replay())),
    );
    within(here.connected()).await;
    let mut by_name = subscribe(&there, "/a").await;
    let mut by_pattern = subscribe(&there, "/*").await;
    publish(&here, "/a", "0").await;
    for subscription in [&mut by_name, &mut by_pattern] {
        assert_eq!(text(subscription).await, "0");
    }
    wire.cut().await;
    until(|| status(&there).state == ConnectionState::Away).await;
    for number in 1..50 {
        publish(&here, "/a", number).await;
    }
    let mut late = there.subscribe("/a").expect("a topic");
    wire.mend().await;
    within(late.established()).await.expect("established");
    publish(&here, "/a", "50").await;
    for subscription in [&mut by_name, &mut by_pattern] {
        for number in 1..=50 {
            assert_eq!(text(subscription).await, number.to_string());
        }
    }
    assert_eq!(text(&mut late).await, "50", "it has missed nothing");
    until(|| replayed(&there).sequence == Some(51)).await;
    assert_eq!(replayed(&there).replayed, 49);
    assert_eq!(there.status().reconnect_gaps, 0);
}

#[tokio::test]
async fn what_the_stream_no_longer_holds_is_a_gap_before_what_it_does() {
    let server = Server::start_storing();
    let mut wire = Wire::new(&server).await;
    let (here, there) = (
        impatient(server.replaying()),
        impatient(wire.settings().replay(replay())),
    );
    within(here.connected()).await;
    let mut subscription = subscribe(&there, "/a").await;
    publish(&here, "/a", "0").await;
    assert_eq!(text(&mut subscription).await, "0");
    wire.cut().await;
    until(|| status(&there).state == ConnectionState::Away).await;
    for number in 1..10 {
        publish(&here, "/a", number).await;
    }
    let stream = streams(&server).await.get_stream("BUS").await;
    let stream = stream.expect("the bus has made it");
    stream.purge().sequence(6).await.expect("it runs");
    wire.mend().await;
    let event = next(&mut subscription).await;
    assert!(is_reconnection(&event), "{event:?}");
    for number in 5..10 {
        assert_eq!(text(&mut subscription).await, number.to_string());
    }
    // All that was missed is gone.
    wire.cut().await;
    until(|| status(&there).state == ConnectionState::Away).await;
    publish(&here, "/a", "lost").await;
    stream.purge().await.expect("it runs");
    wire.mend().await;
    let event = next(&mut subscription).await;
    assert!(is_reconnection(&event), "{event:?}");
    publish(&here, "/a", "after").await;
    assert_eq!(text(&mut subscription).await, "after");
}

#[tokio::test]
async fn a_message_that_is_deleted_before_its_turn_is_a_gap_in_its_place() {
    let server = Server::start_storing();
    let mut wire = Wire::new(&server).await;
    let (here, there) = (
        impatient(server.replaying()),
        impatient(wire.settings().replay(replay())),
    );
    within(here.connected()).await;
    let mut subscription = subscribe(&there, "/a").await;
    wire.cut().await;
    until(|| status(&there).state == ConnectionState::Away).await;
    for number in 1..=3 {
        publish(&here, "/a", number).await;
    }
    let stream = streams(&server).await.get_stream("BUS").await;
    let stream = stream.expect("the bus has made it");
    stream.delete_message(2).await.expect("it is there");
    wire.mend().await;
    assert_eq!(text(&mut subscription).await, "1");
    let event = next(&mut subscription).await;
    assert!(is_reconnection(&event), "{event:?}");
    assert_eq!(text(&mut subscription).await, "3");
}

/// The rest goes while the first messages are delivered.
#[tokio::test]
async fn a_replay_whose_rest_is_gone_ends_with_a_gap_and_lets_others_join() {
    let server = Server::start_storing();
    let mut wire = Wire::new(&server).await;
    let settings = wire.settings().replay(replay());
    let (here, there) = (
        impatient(server.replaying()),
        impatient(settings.ping_interval(Duration::from_secs(1))),
    );
    within(here.connected()).await;
    let (_held, mut events, release) = holding(&there, "/a").await;
    wire.cut().await;
    until(|| status(&there).state == ConnectionState::Away).await;
    // Many times as much as the server sends ahead.
    for _ in 0..40 {
        within(here.publish("/a", vec![0; 500_000]))
            .await
            .expect("published");
    }
    wire.mend().await;
    let mut event = within(events.recv()).await.expect("it is subscribed");
    assert!(event.message().is_some(), "{event:?}");
    let stream = streams(&server).await.get_stream("BUS").await;
    let stream = stream.expect("the bus has made it");
    stream.purge().await.expect("it runs");
    drop(release);
    let mut late = subscribe(&there, "/a").await;
    while event.message().is_some() {
        event = within(events.recv()).await.expect("it is subscribed");
    }
    assert!(is_reconnection(&event), "{event:?}");
    assert!(replayed(&there).replayed < 40);
    publish(&here, "/a", "after").await;
    assert_eq!(text(&mut late).await, "after");
}

#[tokio::test]
async fn what_others_have_overtaken_on_the_way_to_the_stream_does_not_come_after_them() {
    let server = Server::start_storing();
    let bus = impatient(server.replaying().while_away(WhileAway::Queue));
    let mut subscription = subscribe(&bus, "/**").await;
    let (held, mut events, release) = holding(&bus, "/kept/0").await;
    let context = streams(&server).await;
    let stream = context.get_stream("BUS").await;
    let whole = stream
        .expect("the bus has made it")
        .cached_info()
        .config
        .clone();
    let mut part = whole.clone();
    part.subjects = vec!["greenroom.kept.>".to_owned()];
    context.update_stream(&part).await.expect("it is there");
    bus.try_publish("/kept/0", "0").expect("there is room");
    within(events.recv()).await.expect("it is subscribed");
    // The thread is held up, so that both are sent together.
    let (lost, kept, ()) = within(async {
        tokio::join!(
            bus.publish("/lost", "1"),
            bus.publish("/kept/1", "2"),
            async { drop((held, release)) }
        )
    })
    .await;
    let lost = lost.expect_err("no stream took it");
    assert!(matches!(lost, PublishError::Away), "{lost}");
    assert_eq!(kept.expect("stored"), Accepted::Published);
    until(|| status(&bus).state == ConnectionState::Away).await;
    context.update_stream(&whole).await.expect("it is there");
    publish_at_last(&bus, "/lost", "3").await;
    for number in [0, 2, 3] {
        assert_eq!(text(&mut subscription).await, number.to_string());
    }
    assert_eq!(status(&bus).publish_failed, 1);
}

#[tokio::test]
async fn a_stream_that_was_made_anew_is_a_gap_before_its_messages() {
    let server = Server::start_storing();
    let mut wire = Wire::new(&server).await;
    let there = impatient(wire.settings().replay(replay()));
    let mut subscription = subscribe(&there, "/a").await;
    publish(&there, "/a", "before").await;
    assert_eq!(text(&mut subscription).await, "before");
    wire.cut().await;
    until(|| status(&there).state == ConnectionState::Away).await;
    let context = streams(&server).await;
    context.delete_stream("BUS").await.expect("it is there");
    let here = impatient(server.replaying());
    for number in 0..3 {
        publish_at_last(&here, "/a", &number.to_string()).await;
    }
    wire.mend().await;
    let event = next(&mut subscription).await;
    assert!(is_reconnection(&event), "{event:?}");
    for number in 0..3 {
        assert_eq!(text(&mut subscription).await, number.to_string());
    }
}

#[tokio::test]
async fn what_waited_while_the_server_was_away_is_stored_and_heard() {
    let mut server = Server::start_storing();
    let bus = impatient(server.replaying().while_away(WhileAway::Queue));
    let mut subscription = subscribe(&bus, "/a").await;
    server.kill();
    until(|| status(&bus).state == ConnectionState::Away).await;
    for number in 0..5 {
        let accepted = within(bus.publish("/a", number.to_string())).await;
        assert_eq!(accepted.expect("there is room"), Accepted::Queued);
    }
    server.run();
    for number in 0..5 {
        assert_eq!(text(&mut subscription).await, number.to_string());
    }
    until(|| replayed(&bus).sequence == Some(5)).await;
}

#[tokio::test]
async fn a_stream_of_other_subjects_and_a_server_without_streams_are_told_of() {
    let server = Server::start_storing();
    let context = streams(&server).await;
    let config = async_nats::jetstream::stream::Config {
        name: "BUS".to_owned(),
        subjects: vec!["other.>".to_owned()],
        ..Default::default()
    };
    context.create_stream(config).await.expect("there is none");
    let error = failure(&impatient(server.replaying())).await;
    assert!(
        error.contains("`BUS` cannot be used") && error.contains("must hold `greenroom.>` only"),
        "{error}"
    );
    let plain = Server::start();
    let error = failure(&impatient(plain.replaying())).await;
    assert!(error.contains("`BUS` cannot be used"), "{error}");
    assert!(error.contains("jetstream unavailable"), "{error}");
}

#[tokio::test]
async fn the_stream_is_made_with_the_bounds_of_the_settings() {
    let server = Server::start_storing();
    let bounds = ReplaySettings::new("SMALL").expect("a name");
    let bounds = bounds.max_bytes(2 << 20).max_age(Duration::from_mins(5));
    let bus = impatient(server.settings().replay(bounds.in_memory()));
    within(bus.connected()).await;
    let mut stream = streams(&server).await.get_stream("SMALL").await;
    let stream = stream.as_mut().expect("the bus has made it");
    let config = &stream.info().await.expect("it runs").config;
    assert_eq!(config.max_bytes, 2 << 20);
    assert_eq!(config.max_age, Duration::from_mins(5));
    assert_eq!(
        config.storage,
        async_nats::jetstream::stream::StorageType::Memory
    );
    assert_eq!(config.subjects, ["greenroom.>"]);
    bus.try_publish("/a", "x").expect("there is room");
}

/// The first leaves the bus ahead of the stream; the second has again what it lost.
#[tokio::test]
async fn what_was_heard_does_not_come_again_when_one_backup_is_put_back_and_then_another() {
    let mut server = Server::start_storing();
    let bus = impatient(server.replaying().command_timeout(Duration::from_secs(3)));
    let mut subscription = subscribe(&bus, "/a").await;
    let mut backups = Vec::new();
    for numbers in [0..2, 2..4] {
        for number in numbers {
            publish_at_last(&bus, "/a", &number.to_string()).await;
            assert_eq!(text(&mut subscription).await, number.to_string());
        }
        server.stop();
        backups.push(server.back_up());
        server.run();
    }
    server.stop();
    server.restore(&backups[0]);
    server.run();
    let event = next(&mut subscription).await;
    assert!(is_reconnection(&event), "{event:?}");
    until(|| replayed(&bus).sequence == Some(2)).await;
    server.stop();
    server.restore(&backups[1]);
    server.run();
    publish_at_last(&bus, "/a", "after").await;
    assert_eq!(text(&mut subscription).await, "after");
}
