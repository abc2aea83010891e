//! Publishing and subscribing while the server is there.

use greenroom_bus::{
    Accepted, EstablishError, Event, GapCause, PublishError, RedisSettings, SubscribeError,
};

use crate::server::Server;
use crate::{next, publish, subscribe, text, within};

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
async fn a_star_is_one_segment_though_the_servers_crosses_slashes() {
    let server = Server::start();
    let bus = server.bus();
    let mut one = subscribe(&bus, "/a/*").await;
    let mut rest = subscribe(&bus, "/a/**").await;
    let mut odd = subscribe(&bus, r"/a/[x]?\/*").await;
    publish(&bus, "/a/b/c", "deep").await;
    publish(&bus, r"/a/x?\/y", "not what a glob would make of it").await;
    publish(&bus, r"/a/[x]?\/y", "odd").await;
    publish(&bus, "/a/b", "flat").await;
    assert_eq!(text(&mut one).await, "flat");
    assert_eq!(text(&mut rest).await, "deep");
    assert_eq!(text(&mut odd).await, "odd");
}

#[tokio::test]
async fn sharded_topics_need_sharded_publishers_and_have_no_patterns() {
    let server = Server::start();
    let sharded = || greenroom_bus::Bus::redis(server.settings().sharded(true)).expect("a thread");
    let (here, there, classic) = (sharded(), sharded(), server.bus());
    let mut by_name = subscribe(&here, "/a").await;
    within(async { tokio::join!(there.connected(), classic.connected()) }).await;
    publish(&classic, "/a", "not for shards").await;
    publish(&there, "/a", "sharded").await;
    assert_eq!(text(&mut by_name).await, "sharded");
    let channels: Vec<String> = server.ask(&["PUBSUB", "SHARDCHANNELS"]);
    assert_eq!(channels, ["/a"]);
    let error = here.subscribe("/a/*").expect_err("a pattern");
    assert!(
        matches!(error, SubscribeError::PatternOnSharded(_)),
        "{error}"
    );
}

#[tokio::test]
async fn the_server_knows_a_topic_once_and_forgets_it_with_its_last_subscription() {
    let server = Server::start();
    let bus = server.bus();
    let subscribers = || server.ask::<(String, u64)>(&["PUBSUB", "NUMSUB", "/a"]).1;
    let patterns = || server.ask::<u64>(&["PUBSUB", "NUMPAT"]);
    let first = subscribe(&bus, "/a").await;
    let second = subscribe(&bus, "/a").await;
    let one = subscribe(&bus, "/a/*").await;
    let rest = subscribe(&bus, "/a/**").await;
    assert_eq!((subscribers(), patterns()), (1, 1));
    drop((first, one));
    // Later requests get later replies.
    subscribe(&bus, "/fence/1").await;
    assert_eq!((subscribers(), patterns()), (1, 1));
    drop((second, rest));
    subscribe(&bus, "/fence/2").await;
    assert_eq!((subscribers(), patterns()), (0, 0));
    let mut again = subscribe(&bus, "/a").await;
    publish(&bus, "/a", "again").await;
    assert_eq!(text(&mut again).await, "again");
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
    let bus = greenroom_bus::Bus::redis(settings).expect("a thread");
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
    let mut next = [0; 50];
    for _ in 0..50 * EACH {
        let event = crate::next(&mut all).await;
        let message = event.message().expect("no gap");
        let publisher: usize = message.topic().as_str()[1..].parse().expect("a number");
        assert_eq!(message.json::<usize>().expect("a number"), next[publisher]);
        next[publisher] += 1;
    }
    for publisher in publishers {
        publisher.await.expect("all are published");
    }
    assert_eq!(bus.status().redis.expect("it is there").publish_queue, 0);
}

#[tokio::test]
async fn what_the_server_refuses_is_told_in_its_words() {
    let user = "user reader on >secret ~* &/open* +@all";
    let arguments: Vec<_> = std::iter::once("--user")
        .chain(user.split(' ').skip(1))
        .collect();
    let server = Server::start_with(&arguments);
    let url = server.url().replace("//", "//reader:secret@");
    let bus =
        greenroom_bus::Bus::redis(RedisSettings::new(&url).expect("an address")).expect("a thread");
    let refused = bus.subscribe("/closed").expect("a topic");
    let Err(EstablishError::Refused { reason }) = within(refused.established()).await else {
        panic!("the server lets this user subscribe to /open only");
    };
    assert!(reason.contains("no permissions"), "{reason}");
    let too = bus.subscribe("/closed").expect("a topic");
    assert!(
        within(too.established()).await.is_err(),
        "who comes later is told too"
    );
    let error = within(bus.publish("/closed", "x"))
        .await
        .expect_err("refused");
    assert!(
        matches!(&error, PublishError::Refused { reason } if reason.contains("no permissions")),
        "{error}"
    );
    let mut open = subscribe(&bus, "/open").await;
    publish(&bus, "/open", "in").await;
    assert_eq!(text(&mut open).await, "in");
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
