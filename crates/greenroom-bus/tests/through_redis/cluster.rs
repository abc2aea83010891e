//! A cluster of three servers, of which the third is the first one's replica.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom_bus::{Bus, QueueSettings, RedisSettings, Subscription};
use greenroom_test_servers::Certificates;
use redis::cluster_routing::Slot;

use crate::gaps::{check_numbers, publish_numbers, receive_until};
use crate::kit::{failure, gap, next, publish, publish_at_last, subscribe, text, until, within};
use crate::ports::free_port;
use crate::server::{Server, impatient, status};

const LOGIN: &str = ":secret@";

/// The first slot of the second server; those below are the first server's.
const HALF: u16 = 8_192;

struct Cluster {
    first: Server,
    second: Server,
    replica: Server,
}

impl Cluster {
    async fn start() -> Self {
        let start = || {
            // It fails over when the test asks for it, not when the machine is busy.
            let timeout = ["--cluster-node-timeout", "3600000"];
            let login = ["--requirepass", "secret", "--masterauth", "secret"];
            Server::start_in_cluster(&[&timeout[..], &login[..]].concat())
        };
        let cluster = Self {
            first: start(),
            second: start(),
            replica: start(),
        };
        let Self {
            first,
            second,
            replica,
        } = &cluster;
        let half = [(HALF - 1).to_string(), HALF.to_string()];
        let () = first.ask_as(LOGIN, &["CLUSTER", "ADDSLOTSRANGE", "0", &half[0]]);
        let () = second.ask_as(LOGIN, &["CLUSTER", "ADDSLOTSRANGE", &half[1], "16383"]);
        for other in [second, replica] {
            let (port, bus) = (other.port.to_string(), other.cluster_port().to_string());
            let () = first.ask_as(LOGIN, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        until(|| {
            cluster
                .servers()
                .iter()
                .all(|server| knows(server, "cluster_known_nodes:3"))
        })
        .await;
        let () = replica.ask_as(LOGIN, &["CLUSTER", "REPLICATE", &id(first)]);
        until(|| {
            cluster
                .servers()
                .iter()
                .all(|server| knows(server, "cluster_state:ok"))
        })
        .await;
        until(|| {
            cluster
                .servers()
                .iter()
                .all(|server| nodes(server).contains("slave"))
        })
        .await;
        until(|| {
            replica
                .ask_as::<String>(LOGIN, &["INFO", "replication"])
                .contains("master_link_status:up")
        })
        .await;
        cluster
    }

    fn servers(&self) -> [&Server; 3] {
        [&self.first, &self.second, &self.replica]
    }

    /// Connects by one server's address, which leads to the others.
    fn settings(&self) -> RedisSettings {
        let url = format!("redis://{LOGIN}127.0.0.1:{}", self.second.port);
        RedisSettings::cluster([url]).expect("an address")
    }

    fn sharded(&self) -> Bus {
        impatient(self.settings().sharded(true))
    }

    /// Kills the first server, whose replica takes its slots.
    async fn fail_over(&mut self) {
        self.first.kill();
        let () = self
            .replica
            .ask_as(LOGIN, &["CLUSTER", "FAILOVER", "TAKEOVER"]);
        let master = id(&self.replica);
        until(|| {
            let nodes = nodes(&self.second);
            let line = nodes.lines().find(|line| line.starts_with(&master));
            line.is_some_and(|line| line.contains("master") && line.contains("0-8191"))
        })
        .await;
    }
}

fn id(server: &Server) -> String {
    server.ask_as(LOGIN, &["CLUSTER", "MYID"])
}

fn nodes(server: &Server) -> String {
    server.ask_as(LOGIN, &["CLUSTER", "NODES"])
}

fn knows(server: &Server, what: &str) -> bool {
    let info: String = server.ask_as(LOGIN, &["CLUSTER", "INFO"]);
    info.contains(what)
}

/// Returns ten topics of each half's slots.
fn topics() -> Vec<String> {
    let all = || (0..).map(|number| format!("/topic/{number}"));
    let is_low =
        |topic: &String| (0..HALF).any(|slot| Slot::new(slot) == Some(Slot::for_key(topic)));
    let low = all().filter(is_low).take(10);
    low.chain(all().filter(|topic| !is_low(topic)).take(10))
        .collect()
}

async fn subscribe_all(bus: &Bus, topics: &[String]) -> Vec<Subscription> {
    let mut subscriptions = Vec::new();
    for topic in topics {
        subscriptions.push(subscribe(bus, topic).await);
    }
    subscriptions
}

#[tokio::test]
async fn sharded_topics_are_where_their_slots_are_and_heard_everywhere() {
    let cluster = Cluster::start().await;
    let (here, there) = (cluster.sharded(), cluster.sharded());
    let topics = topics();
    let mut subscriptions = subscribe_all(&there, &topics).await;
    let channels =
        |server: &Server| -> HashSet<String> { server.ask_as(LOGIN, &["PUBSUB", "SHARDCHANNELS"]) };
    let (low, high) = topics.split_at(10);
    assert_eq!(channels(&cluster.first), low.iter().cloned().collect());
    assert_eq!(channels(&cluster.second), high.iter().cloned().collect());
    within(here.connected()).await;
    for round in 0..3 {
        for topic in &topics {
            publish(&here, topic, format!("{topic} {round}")).await;
        }
    }
    for (subscription, topic) in subscriptions.iter_mut().zip(&topics) {
        for round in 0..3 {
            assert_eq!(text(subscription).await, format!("{topic} {round}"));
        }
    }
    drop(subscriptions);
    until(|| channels(&cluster.first).is_empty() && channels(&cluster.second).is_empty()).await;
}

#[tokio::test]
async fn classic_topics_and_patterns_reach_the_whole_cluster() {
    let cluster = Cluster::start().await;
    let (here, there) = (impatient(cluster.settings()), impatient(cluster.settings()));
    let topics = topics();
    let mut by_name = subscribe_all(&there, &topics).await;
    let mut by_pattern = subscribe(&there, "/topic/*").await;
    within(here.connected()).await;
    for topic in &topics {
        publish(&here, topic, topic).await;
        assert_eq!(text(&mut by_pattern).await, *topic);
    }
    for (subscription, topic) in by_name.iter_mut().zip(&topics) {
        assert_eq!(text(subscription).await, *topic);
    }
}

#[tokio::test]
async fn after_a_failover_all_are_told_of_the_gap_and_hear_again() {
    let mut cluster = Cluster::start().await;
    let (here, there) = (cluster.sharded(), cluster.sharded());
    let topics = topics();
    let mut subscriptions = subscribe_all(&there, &topics).await;
    within(here.connected()).await;
    cluster.fail_over().await;
    for (subscription, topic) in subscriptions.iter_mut().zip(&topics) {
        gap(subscription).await;
        publish_at_last(&here, topic, topic).await;
        while text_or_gap(subscription).await != *topic {}
    }
}

/// Returns an empty text for a gap: a bus that was there before its new master may need more than
/// one try.
async fn text_or_gap(subscription: &mut Subscription) -> String {
    let event = next(subscription).await;
    let text = |message: &greenroom_bus::Message| {
        String::from_utf8(message.payload().to_vec()).expect("a text was published")
    };
    event.message().map(text).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_over_under_load_no_message_is_missing_without_a_gap() {
    let mut cluster = Cluster::start().await;
    let (here, there) = (cluster.sharded(), cluster.sharded());
    let topic = &topics()[0];
    within(here.connected()).await;
    let queue = QueueSettings::default().events_max(10_000_000.try_into().expect("not zero"));
    let mut subscription = there
        .subscribe_with(topic.as_str(), queue)
        .expect("a topic");
    within(subscription.established())
        .await
        .expect("established");
    let (taken, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let load = publish_numbers(here, topic.clone(), Arc::clone(&taken), Arc::clone(&stop));
    let load = tokio::spawn(load);
    let mut seen = receive_until(&mut subscription, 200).await;
    cluster.fail_over().await;
    let last = taken.load(Ordering::Acquire);
    seen.extend(receive_until(&mut subscription, last + 200).await);
    stop.store(1, Ordering::Release);
    let published = load.await.expect("no panic");
    assert!(seen.contains(&0), "the subscriber was told of a gap");
    check_numbers(&seen, &published);
}

#[tokio::test]
async fn a_topic_whose_slot_moves_is_followed() {
    let cluster = Cluster::start().await;
    let (here, there) = (cluster.sharded(), cluster.sharded());
    let topic = &topics()[0];
    let mut subscription = subscribe(&there, topic).await;
    within(here.connected()).await;
    publish(&here, topic, "before").await;
    assert_eq!(text(&mut subscription).await, "before");
    let slot: u16 = cluster.first.ask_as(LOGIN, &["CLUSTER", "KEYSLOT", topic]);
    let (slot, heir) = (slot.to_string(), id(&cluster.second));
    for server in [&cluster.second, &cluster.first] {
        let () = server.ask_as(LOGIN, &["CLUSTER", "SETSLOT", &slot, "NODE", &heir]);
    }
    gap(&mut subscription).await;
    publish_at_last(&here, topic, "after").await;
    while text_or_gap(&mut subscription).await != "after" {}
    let channels: Vec<String> = cluster.second.ask_as(LOGIN, &["PUBSUB", "SHARDCHANNELS"]);
    assert_eq!(channels, [topic.as_str()]);
}

#[tokio::test]
async fn a_wrong_password_and_a_server_that_is_no_cluster_are_told_of() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let url = format!("redis://127.0.0.1:{}", server.port);
    let settings = RedisSettings::cluster([url]).expect("an address");
    let error = failure(&impatient(settings.clone().login("default", "other"))).await;
    assert!(
        error.contains("WRONGPASS") || error.contains("authentication"),
        "{error}"
    );
    let error = failure(&impatient(settings.login("default", "secret"))).await;
    assert!(error.contains("cluster support disabled"), "{error}");
}

#[tokio::test]
async fn a_cluster_is_spoken_to_by_tls() {
    let certificates = Certificates::new();
    let [plain, bus] = [free_port(), free_port()].map(|port| port.to_string());
    let tls = ["--tls-auth-clients", "no", "--tls-cluster", "yes"];
    let cluster = ["--cluster-enabled", "yes", "--cluster-port", &bus];
    let arguments = [&tls[..], &cluster[..], &["--port", &plain]].concat();
    let server = Server::start_tls_with(&certificates, &arguments);
    let client = redis::Client::open(format!("redis://127.0.0.1:{plain}"));
    let mut client = client
        .and_then(|client| client.get_connection())
        .expect("it runs");
    let mut slots = redis::cmd("CLUSTER");
    let slots = slots.arg("ADDSLOTSRANGE").arg(0).arg(16_383);
    slots.exec(&mut client).expect("they are free");
    let url = format!("rediss://localhost:{}", server.port);
    let settings = RedisSettings::cluster([url]).expect("an address");
    let settings = settings.tls_roots(certificates.authority).expect("PEM");
    let bus = impatient(settings.sharded(true));
    let mut subscription = subscribe(&bus, "/a").await;
    publish_at_last(&bus, "/a", "in").await;
    while text_or_gap(&mut subscription).await != "in" {}
}

#[tokio::test]
async fn a_cluster_that_stands_still_counts_as_away() {
    let cluster = Cluster::start().await;
    let millis = Duration::from_millis;
    let settings = cluster.settings().sharded(true).ping_interval(millis(20));
    let bus = impatient(settings.command_timeout(millis(300)));
    let topic = &topics()[0];
    let mut subscription = subscribe(&bus, topic).await;
    cluster.first.freeze();
    until(|| status(&bus).connections_lost > 0).await;
    cluster.first.thaw();
    gap(&mut subscription).await;
    publish_at_last(&bus, topic, "after").await;
    while text_or_gap(&mut subscription).await != "after" {}
}
