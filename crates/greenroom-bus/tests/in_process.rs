//! The bus within a process, as its users see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use greenroom_bus::{
    Accepted, Bus, End, EstablishError, Event, GapCause, Overflow, PAYLOAD_BYTES_MAX, PublishError,
    QueueSettings, SinkError, Subscription,
};

/// Returns the payload of the next event, which is a message.
async fn text(subscription: &mut Subscription) -> String {
    match subscription.recv().await {
        Some(Event::Message(message)) => {
            String::from_utf8(message.payload().to_vec()).expect("a text was published")
        }
        other => panic!("not a message: {other:?}"),
    }
}

fn settings(events_max: usize, overflow: Overflow) -> QueueSettings {
    let events_max = events_max.try_into().expect("not zero");
    QueueSettings::default()
        .events_max(events_max)
        .overflow(overflow)
}

#[tokio::test]
async fn a_message_goes_to_all_who_subscribed_to_its_topic_or_pattern() {
    let bus = Bus::in_process();
    let patterns = [
        "/picture/42/likes",
        "/picture/42/likes",
        "/picture/*/likes",
        "/picture/**",
    ];
    let mut heard = Vec::new();
    for pattern in patterns {
        heard.push(bus.subscribe(pattern).expect("a pattern"));
    }
    let mut other = bus.subscribe("/picture/*").expect("a pattern");
    let accepted = bus
        .publish("/picture/42/likes", "ada")
        .await
        .expect("published");
    assert_eq!(accepted, Accepted::Published);
    for subscription in &mut heard {
        subscription.established().await.expect("established");
        assert_eq!(text(subscription).await, "ada");
        assert!(subscription.try_recv().is_none(), "once each");
    }
    assert!(other.try_recv().is_none());
}

#[tokio::test]
async fn a_message_tells_its_topic_and_is_read_as_json() {
    let bus = Bus::in_process();
    let mut likes = bus.subscribe("/picture/*/likes").expect("a pattern");
    bus.publish_json("/picture/42/likes", &vec![1, 2])
        .await
        .expect("published");
    let event = likes.next().await.expect("an event");
    let message = event.message().expect("a message");
    assert_eq!(message.topic().as_str(), "/picture/42/likes");
    assert_eq!(message.json::<Vec<u8>>().expect("JSON"), [1, 2]);
    let error = message.json::<String>().expect_err("it is a list");
    assert!(
        error
            .to_string()
            .contains("`/picture/42/likes` as JSON of type"),
        "{error}"
    );
}

#[tokio::test]
async fn bad_input_is_refused_with_its_reason() {
    let bus = Bus::in_process();
    let error = bus.publish("/picture/*", "x").await.expect_err("a pattern");
    assert!(error.to_string().contains("belongs to patterns"), "{error}");
    let error = bus.subscribe("picture").expect_err("no slash");
    assert!(
        error.to_string().contains("must begin with a slash"),
        "{error}"
    );
    let longest = Bytes::from(vec![0; PAYLOAD_BYTES_MAX]);
    bus.publish("/a", longest).await.expect("just short enough");
    let error = bus.publish("/a", vec![0; PAYLOAD_BYTES_MAX + 1]).await;
    let error = error.expect_err("a byte too long");
    assert!(
        matches!(
            error,
            PublishError::TooLong {
                bytes: 1_048_577,
                ..
            }
        ),
        "{error}"
    );
    assert!(!error.is_temporary());
}

#[tokio::test]
async fn a_slow_subscriber_learns_what_it_missed_and_nobody_else_misses_anything() {
    let bus = Bus::in_process();
    let mut slow = bus
        .subscribe_with("/a", settings(10, Overflow::DropOldest))
        .expect("a topic");
    let mut first = bus
        .subscribe_with("/a", settings(10, Overflow::DropNewest))
        .expect("a topic");
    let mut quick = bus.subscribe("/a").expect("a topic");
    for number in 0..100 {
        bus.publish("/a", number.to_string())
            .await
            .expect("published");
    }
    for number in 0..100 {
        assert_eq!(text(&mut quick).await, number.to_string());
    }
    let gap = slow.recv().await;
    let is_gap = |event, missed| match event {
        Some(Event::Gap {
            missed: found,
            cause,
        }) => (found, cause) == (Some(missed), GapCause::Overflow),
        _ => false,
    };
    assert!(is_gap(gap, 90));
    for number in 90..100 {
        assert_eq!(text(&mut slow).await, number.to_string());
    }
    for number in 0..10 {
        assert_eq!(text(&mut first).await, number.to_string());
    }
    assert!(is_gap(first.recv().await, 90));
    assert_eq!(bus.status().dropped, 180);
}

#[tokio::test]
async fn a_subscription_that_closes_when_full_gives_what_it_has_and_ends() {
    let bus = Bus::in_process();
    let mut closing = bus
        .subscribe_with("/a", settings(2, Overflow::Close))
        .expect("a topic");
    for number in 0..3 {
        bus.publish("/a", number.to_string())
            .await
            .expect("published");
    }
    assert_eq!(closing.ended(), Some(End::Overflow));
    assert_eq!(text(&mut closing).await, "0");
    assert_eq!(text(&mut closing).await, "1");
    assert!(closing.recv().await.is_none());
    let status = bus.status();
    assert_eq!((status.subscriptions, status.overflow_closed), (0, 1));
}

#[tokio::test]
async fn the_last_handle_ends_all_subscriptions() {
    let bus = Bus::in_process();
    let mut subscription = bus.subscribe("/**").expect("a pattern");
    let sink = bus.subscribe_sink("/**", |_| Ok(())).expect("a pattern");
    let clone = bus.clone();
    drop(bus);
    clone.publish("/a", "still there").await.expect("published");
    let waiting = tokio::spawn(async move {
        let text = text(&mut subscription).await;
        (
            text,
            subscription.recv().await.is_none(),
            subscription.ended(),
        )
    });
    drop(clone);
    let (text, has_ended, end) = waiting.await.expect("no panic");
    assert_eq!(text, "still there");
    assert!(has_ended);
    assert_eq!([end, sink.ended()], [Some(End::BusDropped); 2]);
}

#[tokio::test]
async fn dropping_unsubscribes() {
    let bus = Bus::in_process();
    let by_name = bus.subscribe("/a").expect("a topic");
    let by_pattern = bus.subscribe("/*").expect("a pattern");
    let status = bus.status();
    assert_eq!(
        (status.subscriptions, status.topics, status.patterns),
        (2, 1, 1)
    );
    drop(by_name);
    drop(by_pattern);
    let status = bus.status();
    assert_eq!(
        (status.subscriptions, status.topics, status.patterns),
        (0, 0, 0)
    );
    bus.publish("/a", "x").await.expect("published");
    assert_eq!(bus.status().delivered, 0);
}

#[tokio::test]
async fn a_sink_is_called_and_told_of_its_gap() {
    let bus = Bus::in_process();
    let (sender, mut receiver) = tokio::sync::mpsc::channel(2);
    let sink = bus.subscribe_sink("/a", move |event| {
        sender.try_send(event).map_err(|_| SinkError::Full)
    });
    let sink = sink.expect("a topic");
    for number in 0..5 {
        bus.publish("/a", number.to_string())
            .await
            .expect("published");
    }
    let payload =
        |event: Option<Event>| event.and_then(|event| Some(event.message()?.payload().clone()));
    assert_eq!(payload(receiver.recv().await).expect("a message"), "0");
    assert_eq!(payload(receiver.recv().await).expect("a message"), "1");
    bus.publish("/a", "5").await.expect("published");
    let gap = receiver.recv().await;
    assert!(
        matches!(
            gap,
            Some(Event::Gap {
                missed: Some(3),
                ..
            })
        ),
        "{gap:?}"
    );
    assert_eq!(payload(receiver.recv().await).expect("a message"), "5");
    drop(sink);
    assert!(
        receiver.recv().await.is_none(),
        "the sink is dropped with its subscription"
    );
}

/// Publishes two messages to `/a`, which the subscription hears.
async fn hears_two(subscription: &mut Subscription, bus: &Bus) {
    for number in 0..2 {
        bus.publish("/a", number.to_string())
            .await
            .expect("published");
        assert_eq!(text(subscription).await, number.to_string());
    }
}

#[tokio::test]
async fn a_sink_that_closes_or_panics_is_left_alone() {
    let bus = Bus::in_process();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    bus.subscribe_sink("/a", move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(SinkError::Closed)
    })
    .expect("a topic")
    .detach();
    let panics = bus
        .subscribe_sink("/a", |_| panic!("of a test"))
        .expect("a topic");
    let mut other = bus.subscribe("/a").expect("a topic");
    hears_two(&mut other, &bus).await;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(panics.ended(), Some(End::SinkClosed));
    assert_eq!(panics.established().await, Err(EstablishError::Ended));
    assert_eq!(bus.status().subscriptions, 1);
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("of a test");
    }
}

#[tokio::test]
async fn a_sink_that_panics_when_it_is_dropped_harms_nobody() {
    let bus = Bus::in_process();
    let content = PanicsWhenDropped;
    bus.subscribe_sink("/a", move |_| {
        let _ = &content;
        Err(SinkError::Closed)
    })
    .expect("a topic")
    .detach();
    let mut other = bus.subscribe("/a").expect("a topic");
    hears_two(&mut other, &bus).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stays_subscribed_misses_nothing_while_others_come_and_go() {
    const MESSAGES: usize = 500;
    let bus = Bus::in_process();
    let readers: Vec<_> = (0..20)
        .map(|index| {
            let pattern = if index % 2 == 0 { "/a/b" } else { "/a/*" };
            let mut subscription = bus.subscribe(pattern).expect("a pattern");
            tokio::spawn(async move {
                for number in 0..MESSAGES {
                    assert_eq!(text(&mut subscription).await, number.to_string());
                }
            })
        })
        .collect();
    let passing = bus.clone();
    let comers = tokio::spawn(async move {
        for _ in 0..MESSAGES {
            let subscriptions = [passing.subscribe("/a/b"), passing.subscribe("/a/*")];
            tokio::task::yield_now().await;
            drop(subscriptions);
        }
    });
    for number in 0..MESSAGES {
        bus.publish("/a/b", number.to_string())
            .await
            .expect("published");
        tokio::task::yield_now().await;
    }
    for reader in readers {
        reader.await.expect("all messages in order, no gap");
    }
    comers.await.expect("no panic");
    assert_eq!(bus.status().subscriptions, 0);
}

#[tokio::test]
async fn the_status_is_a_plain_object() {
    let bus = Bus::in_process();
    let _subscription = bus.subscribe("/a").expect("a topic");
    bus.publish("/a", "x").await.expect("published");
    let status = serde_json::to_value(bus.status()).expect("JSON");
    let expected = serde_json::json!({
        "adaptor": "in_process",
        "subscriptions": 1,
        "topics": 1,
        "patterns": 0,
        "published": 1,
        "delivered": 1,
        "dropped": 0,
        "overflow_closed": 0,
        "reconnect_gaps": 0,
        "redis": null,
            "nats": null,
    });
    assert_eq!(status, expected);
}
