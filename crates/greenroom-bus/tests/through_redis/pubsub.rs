//! The tests of Redis alone: globs, shards, rights, and the end of a connection by the server.

use greenroom_bus::{Bus, EstablishError, PublishError, RedisSettings, SubscribeError};

use crate::kit::{is_reconnection, next, publish, subscribe, text, within};
use crate::server::{Server, impatient};

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
    let sharded = || Bus::redis(server.settings().sharded(true)).expect("a thread");
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
async fn what_the_server_refuses_is_told_in_its_words() {
    let user = "user reader on >secret ~* &/open* +@all";
    let arguments: Vec<_> = std::iter::once("--user")
        .chain(user.split(' ').skip(1))
        .collect();
    let server = Server::start_with(&arguments);
    let url = server.url().replace("//", "//reader:secret@");
    let bus = Bus::redis(RedisSettings::new(&url).expect("an address")).expect("a thread");
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

#[tokio::test]
async fn a_connection_that_the_server_ends_is_made_again() {
    let server = Server::start();
    let bus = impatient(server.settings());
    let mut by_name = subscribe(&bus, "/a").await;
    let mut by_pattern = subscribe(&bus, "/*").await;
    let killed: u64 = server.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(killed, 1, "one connection for all");
    for subscription in [&mut by_name, &mut by_pattern] {
        let event = next(subscription).await;
        assert!(is_reconnection(&event), "{event:?}");
    }
    within(bus.connected()).await;
    publish(&bus, "/a", "after").await;
    assert_eq!(text(&mut by_name).await, "after");
    assert_eq!(text(&mut by_pattern).await, "after");
}
