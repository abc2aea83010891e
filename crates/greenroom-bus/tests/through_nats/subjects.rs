//! The tests of NATS alone: subjects, foreign programs, rights, limits.

use std::time::Duration;

use greenroom_bus::{EstablishError, Event, PAYLOAD_BYTES_MAX, PublishError};

use crate::kit::{is_reconnection, next, publish, subscribe, text, until, within};
use crate::server::{Server, impatient, status};

async fn client(server: &Server) -> async_nats::Client {
    async_nats::connect(server.url()).await.expect("it runs")
}

#[tokio::test]
async fn foreign_programs_publish_and_subscribe_by_subject() {
    let server = Server::start();
    let bus = server.bus();
    let foreign = client(&server).await;
    let mut heard = foreign.subscribe("greenroom.>").await.expect("a subject");
    foreign.flush().await.expect("it runs");
    let mut likes = subscribe(&bus, "/picture/*/likes").await;
    foreign
        .publish("greenroom.picture.v1%2E2.likes", "in".into())
        .await
        .expect("it runs");
    let event = next(&mut likes).await;
    let message = event.message().expect("no gap");
    assert_eq!(message.topic().as_str(), "/picture/v1.2/likes");
    assert_eq!(message.payload(), "in");
    publish(&bus, "/a b/100%", "out").await;
    let subject = loop {
        use futures_util::StreamExt;
        let message = within(heard.next()).await.expect("it runs");
        if message.payload == "out" {
            break message.subject;
        }
    };
    assert_eq!(subject.as_str(), "greenroom.a%20b.100%25");
}

#[tokio::test]
async fn odd_topics_are_heard_by_name_and_by_pattern_and_foreign_subjects_are_not() {
    let server = Server::start();
    let bus = server.bus();
    let foreign = client(&server).await;
    let odd = ["/a/b.c", "/a/>", "/a/x y", "/a/ä%20", r"/a/[x]?\"];
    let mut by_name = Vec::new();
    for topic in odd {
        by_name.push(subscribe(&bus, topic).await);
    }
    let mut one = subscribe(&bus, "/a/*").await;
    let mut rest = subscribe(&bus, "/**").await;
    for subject in ["greenroom.a.%2A", "greenroom.a.b%2ec", "greenroom.a.%FF"] {
        foreign
            .publish(subject, "no topic".into())
            .await
            .expect("it runs");
    }
    foreign.flush().await.expect("it runs");
    for (topic, by_name) in odd.iter().zip(&mut by_name) {
        publish(&bus, topic, topic).await;
        for subscription in [&mut *by_name, &mut one, &mut rest] {
            let event = next(subscription).await;
            let message = event.message().expect("no gap");
            assert_eq!(message.topic().as_str(), *topic);
        }
    }
}

#[tokio::test]
async fn the_server_knows_a_topic_once_and_forgets_it_with_its_last_subscription() {
    let server = Server::start();
    let bus = server.bus();
    let subscriptions = || {
        let told = server.monitor("/connz?subs=1").expect("it runs");
        let subjects = told["connections"][0]["subscriptions_list"].as_array();
        let subjects = subjects.into_iter().flatten();
        let is_ours = |subject: &str| subject.starts_with("greenroom.");
        subjects
            .filter(|subject| subject.as_str().is_some_and(is_ours))
            .count()
    };
    let first = subscribe(&bus, "/a").await;
    let second = subscribe(&bus, "/a").await;
    let one = subscribe(&bus, "/a/*").await;
    assert_eq!(subscriptions(), 2);
    drop((first, one));
    until(|| subscriptions() == 1).await;
    drop(second);
    until(|| subscriptions() == 0).await;
    let mut again = subscribe(&bus, "/a").await;
    publish(&bus, "/a", "again").await;
    assert_eq!(text(&mut again).await, "again");
}

#[tokio::test]
async fn buses_of_other_prefixes_do_not_hear_each_other() {
    let server = Server::start();
    let other = server.settings().prefix("other.app").expect("a prefix");
    let (here, there) = (server.bus(), impatient(other));
    let mut subscription = subscribe(&there, "/**").await;
    within(here.connected()).await;
    publish(&here, "/a", "not for them").await;
    publish(&there, "/a", "for them").await;
    assert_eq!(text(&mut subscription).await, "for them");
}

#[tokio::test]
async fn what_the_server_refuses_is_told_in_its_words() {
    let server = Server::start_with(
        r#"authorization { users: [ { user: reader, password: secret, permissions: {
            publish: ["greenroom.open", "_INBOX.>"],
            subscribe: ["greenroom.open", "_INBOX.>"] } } ] }"#,
    );
    let bus = impatient(server.settings().login("reader", "secret"));
    let refused = bus.subscribe("/closed").expect("a topic");
    let Err(EstablishError::Refused { reason }) = within(refused.established()).await else {
        panic!("the server lets this user subscribe to /open only");
    };
    assert!(reason.contains("Permissions Violation"), "{reason}");
    let too = bus.subscribe("/closed").expect("a topic");
    assert!(
        within(too.established()).await.is_err(),
        "who comes later is told too"
    );
    let publish_both =
        || async { tokio::join!(bus.publish("/closed", "x"), bus.publish("/open", "y")) };
    let mut open = subscribe(&bus, "/open").await;
    let (closed, opened) = within(publish_both()).await;
    let error = closed.expect_err("refused");
    assert!(
        matches!(&error, PublishError::Refused { reason } if reason.contains("greenroom.closed")),
        "{error}"
    );
    opened.expect("published");
    assert_eq!(text(&mut open).await, "y");
    assert_eq!(status(&bus).connections_lost, 0);
}

#[tokio::test]
async fn a_user_without_an_inbox_is_told_so() {
    let server = Server::start_with(
        r#"authorization { users: [ { user: a, password: b, permissions: {
            publish: ["greenroom.>", "_INBOX.app.>"],
            subscribe: ["greenroom.>", "_INBOX.app.>"] } } ] }"#,
    );
    let settings = server.settings().login("a", "b");
    let error = crate::kit::failure(&impatient(settings.clone())).await;
    assert!(error.contains("_INBOX"), "{error}");
    let bus = impatient(settings.inbox_prefix("_INBOX.app").expect("a prefix"));
    let mut subscription = subscribe(&bus, "/a").await;
    publish(&bus, "/a", "in").await;
    assert_eq!(text(&mut subscription).await, "in");
}

#[tokio::test]
async fn a_payload_beyond_the_servers_limit_is_refused_by_that_limit() {
    let mut server = Server::start_with("max_payload: 1000");
    let bus = impatient(server.settings());
    let early = bus.try_publish("/a", vec![0; PAYLOAD_BYTES_MAX + 1]);
    assert!(matches!(
        early,
        Err(PublishError::TooLong {
            bytes_max: PAYLOAD_BYTES_MAX | 1_000,
            ..
        })
    ));
    let mut subscription = subscribe(&bus, "/a").await;
    let error = within(bus.publish("/a", vec![0; 1_001])).await;
    let error = error.expect_err("too long").to_string();
    assert!(
        error.contains("has 1001 bytes, and may have 1000"),
        "{error}"
    );
    within(bus.publish("/a", vec![0; 1_000]))
        .await
        .expect("published");
    assert_eq!(
        next(&mut subscription)
            .await
            .message()
            .expect("no gap")
            .payload()
            .len(),
        1_000
    );
    server.stop();
}

#[tokio::test]
async fn what_waited_for_a_server_with_a_lower_limit_is_counted_as_failed() {
    let mut server = Server::prepared_with("max_payload: 1000");
    let bus = impatient(
        server
            .settings()
            .while_away(greenroom_bus::WhileAway::Queue),
    );
    bus.try_publish("/a", vec![0; 1_001])
        .expect("there is room");
    let mut subscription = bus.subscribe("/a").expect("a topic");
    bus.try_publish("/a", "short").expect("there is room");
    server.run();
    assert_eq!(text(&mut subscription).await, "short");
    until(|| status(&bus).publish_failed == 1).await;
}

#[tokio::test]
async fn a_bus_that_is_held_up_tells_of_the_gap() {
    const MESSAGES: u64 = 20_000;
    let server = Server::start();
    let foreign = client(&server).await;
    let there = impatient(server.settings().pending_max(16));
    let (sender, held_up) = std::sync::mpsc::sync_channel::<()>(0);
    let held_up = std::sync::Mutex::new(held_up);
    let slow = there.subscribe_sink("/hold", move |_| {
        let _ = held_up.lock().expect("no panic").recv();
        Ok(())
    });
    let slow = slow.expect("a topic");
    within(slow.established()).await.expect("established");
    let mut subscription = subscribe(&there, "/a").await;
    let publish = async |subject: &'static str, payload: String| {
        let published = foreign.publish(subject, payload.into());
        published.await.expect("it runs");
    };
    publish("greenroom.hold", String::new()).await;
    for number in 1..=MESSAGES {
        publish("greenroom.a", number.to_string()).await;
    }
    foreign.flush().await.expect("it runs");
    drop(sender);
    let mut last = 0;
    loop {
        match next(&mut subscription).await {
            Event::Message(message) => {
                let number: u64 = message.json().expect("a number");
                assert_eq!(number, last + 1, "no gap was told");
                last = number;
            }
            event if is_reconnection(&event) => break,
            Event::Gap { .. } => {}
        }
    }
    assert!(last < MESSAGES, "some were lost");
    let error = status(&there).last_error.expect("the reason");
    assert!(error.contains("faster than this process"), "{error}");
}

#[tokio::test]
async fn a_server_that_ends_in_order_is_found_again() {
    let mut server = Server::start();
    let bus = impatient(server.settings().ping_interval(Duration::from_millis(20)));
    let mut subscription = subscribe(&bus, "/a").await;
    server.stop();
    server.run();
    let event = next(&mut subscription).await;
    assert!(is_reconnection(&event), "{event:?}");
    within(bus.connected()).await;
    publish(&bus, "/a", "after").await;
    assert_eq!(text(&mut subscription).await, "after");
    let server_now = bus.status().nats.expect("it is there").server;
    assert_eq!(server_now, Some(format!("127.0.0.1:{}", server.port())));
}
