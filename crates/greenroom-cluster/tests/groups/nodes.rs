//! Several nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom_actor::{Actor, ActorSystem, Context, Handler, messages};
use greenroom_cluster::serde::{Deserialize, Deserializer, Serialize, Serializer};
use greenroom_cluster::{
    Cluster, ClusterSettings, ConnectError, MemberChange, MemberEvent, PublishSettings, Remote,
    RemoteError,
};
use greenroom_test_servers::{NatsCluster, NatsServer};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::counter::{
    Counter, CounterRemoteMessages, GATES, Host, LONG, caller, host, node, server, spawn,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_to_another_node_and_the_reply_comes_back() {
    let server = server();
    let _host = host(&server, "one").await;
    let (_node, counters) = caller(&server).await;
    assert_eq!(counters.add(1).ask().await.expect("a reply"), 1);
    counters.add(2).tell().await.expect("it is known");
    assert_eq!(counters.add(3).ask().await.expect("a reply"), 6);
    let error = counters.fail().ask().await.expect_err("it panics");
    assert!(matches!(error, RemoteError::Failed { .. }), "{error}");
    let error = counters.large(600_000).ask().await.expect_err("too large");
    assert!(
        error.to_string().contains("the reply has 600005 bytes"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_senders_messages_keep_their_order() {
    let server = server();
    let _host = host(&server, "one").await;
    let (_node, counters) = caller(&server).await;
    let mut asked = Vec::new();
    for _ in 0..200 {
        counters.add(1).tell().await.expect("it is known");
        let counters = counters.clone();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        tokio::spawn(async move { sender.send(counters.add(0).ask().await) });
        asked.push(receiver);
        // The mailbox has 64 places.
        if asked.len() == 20 {
            for reply in asked.drain(..) {
                reply.await.expect("it runs").expect("a reply");
            }
        }
    }
    assert_eq!(counters.add(0).ask().await.expect("a reply"), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_without_known_members_is_asked_by_its_queue() {
    let server = server();
    let _host = host(&server, "one").await;
    // This node may not have heard of the other one yet.
    let cluster = node(&server).await;
    let counters: Remote<Counter> = cluster.actor("counters").expect("a name");
    assert_eq!(counters.name().ask().await.expect("a reply"), "one");
}

/// Waits until this node knows of two nodes with a member of some group.
async fn two_members_known(cluster: &Cluster) {
    let members = || {
        let nodes = cluster.status().nodes;
        nodes.iter().filter(|node| !node.groups.is_empty()).count()
    };
    while members() < 2 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_share_the_work_and_a_draining_one_gets_none() {
    let server = server();
    let one = host(&server, "one").await;
    let two = host(&server, "two").await;
    let (cluster, counters) = caller(&server).await;
    two_members_known(&cluster).await;
    let mut names = BTreeSet::new();
    while names.len() < 2 {
        names.insert(counters.name().ask().await.expect("a reply"));
    }
    assert!(one.publication.leave(LONG).await);
    for _ in 0..50 {
        assert_eq!(counters.name().ask().await.expect("a reply"), "two");
    }
    two.cluster.drain(LONG).await;
}

/// Holds a member until the test lets it go on, and returns its name.
async fn hold(full: Remote<Counter>) -> String {
    loop {
        match full.wait(1).timeout(LONG).ask().await {
            Ok(name) => return name,
            // What the test asks may be there before.
            Err(RemoteError::Refused { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_member_sends_the_asker_elsewhere_and_the_last_one_refuses() {
    let server = server();
    let (one, two) = (node(&server).await, node(&server).await);
    let system = ActorSystem::new().expect("a system");
    let mut publications = Vec::new();
    for (cluster, name) in [(&one, "one"), (&two, "two")] {
        let settings = PublishSettings::default().in_flight_max(1);
        let published = cluster.publish_with("full", &spawn(&system, name), settings);
        let published = published.expect("it is new");
        published.announced().await;
        publications.push(published);
    }
    let cluster = node(&server).await;
    two_members_known(&cluster).await;
    let full: Remote<Counter> = cluster.actor("full").expect("a name");
    let first = tokio::spawn(hold(full.clone()));
    let second = tokio::spawn(hold(full.clone()));
    // Both are there when a third one is rejected by both.
    let error = loop {
        match full.add(0).ask().await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, RemoteError::Refused { .. }), "{error}");
    assert!(error.is_unhandled());
    GATES[1].add_permits(2);
    let first = first.await.expect("it runs");
    let second = second.await.expect("it runs");
    assert_eq!(
        BTreeSet::from([&*first, &*second]),
        BTreeSet::from(["one", "two"])
    );
}

struct Newer;

impl Actor for Newer {}

#[messages(remote = "counter.v2")]
impl Newer {
    #[message]
    fn subtract(&mut self, amount: u64) -> u64 {
        amount
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_versions_run_side_by_side_and_a_missing_one_is_named() {
    let server = server();
    let old = host(&server, "old").await;
    let (cluster, counters) = caller(&server).await;
    let newer: Remote<Newer> = cluster.actor("counters").expect("a name");
    let error = newer
        .subtract(1)
        .ask()
        .await
        .expect_err("only the old one is there");
    let text = "no node has the group `counters` of counter.v2, but of counter.v1";
    assert_eq!(error.to_string(), text);
    let system = ActorSystem::new().expect("a system");
    let published = old.cluster.publish("counters", &system.spawn(|| Newer));
    let published = published.expect("it is another kind");
    published.announced().await;
    cluster.member_known::<Newer>("counters").await;
    assert_eq!(newer.subtract(7).ask().await.expect("a reply"), 7);
    assert_eq!(counters.add(1).ask().await.expect("a reply"), 1);
}

pub(crate) struct Watcher(pub(crate) mpsc::UnboundedSender<MemberEvent>);

impl Actor for Watcher {}

impl Handler<MemberEvent> for Watcher {
    type Reply = ();

    fn handle(&mut self, event: MemberEvent, _: &mut Context<Self>) {
        let _ = self.0.send(event);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_is_told_who_joins_leaves_and_is_lost() {
    let server = server();
    let cluster = node(&server).await;
    let system = ActorSystem::new().expect("a system");
    let (sender, mut events) = mpsc::unbounded_channel();
    let watcher = system.spawn(move || Watcher(sender.clone()));
    assert!(cluster.watch::<Counter>("counters", watcher.recipient()));
    let mut next = async |change| loop {
        let event = events.recv().await.expect("the watcher lives");
        if event.change == change {
            return event.node;
        }
    };
    let one = host(&server, "one").await;
    assert_eq!(next(MemberChange::Joined).await, *one.cluster.node());
    let id = one.cluster.node().clone();
    // An actor that ends takes its membership along.
    one.actor.stop();
    assert_eq!(next(MemberChange::Left).await, id);
    let two = host(&server, "two").await;
    let id = two.cluster.node().clone();
    assert_eq!(next(MemberChange::Joined).await, id);
    // Without a word: its record is missed when the lease ends.
    let Host {
        cluster: lost,
        publication,
        ..
    } = two;
    drop((lost, publication));
    assert_eq!(next(MemberChange::Lost).await, id);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_on_when_the_server_comes_back() {
    let mut server = server();
    let host = host(&server, "one").await;
    let (node, counters) = caller(&server).await;
    server.kill();
    let error = counters
        .add(1)
        .timeout(Duration::from_millis(200))
        .ask()
        .await;
    assert!(!error.expect_err("the server is gone").is_unhandled());
    server.run();
    let name = loop {
        if let Ok(name) = counters.name().ask().await {
            break name;
        }
    };
    assert_eq!(name, "one");
    // No node has connected anew, and still they hear of each other.
    let published = host.cluster.publish("others", &host.actor);
    let _published = published.expect("it is new");
    let known = timeout(LONG, node.member_known::<Counter>("others"));
    known.await.expect("the record is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_lease_than_that_of_nodes_which_live_is_refused() {
    let server = server();
    let connect_within = async |lease: u64, time: Duration| {
        let settings = ClusterSettings::new(&server.url()).expect("an address");
        let settings = settings.lease(Duration::from_secs(lease));
        Cluster::connect(settings.connect_timeout(time)).await
    };
    let connect = async |lease| connect_within(lease, LONG).await;
    // All of this time passes, as the nodes that are there may be about to leave.
    let refused = async |lease| {
        let refused = connect_within(lease, Duration::from_secs(5)).await;
        refused.expect_err("it is another one")
    };
    let first = connect(6).await.expect("it is alone");
    for other in [1, 30] {
        let error = refused(other).await;
        let text = format!("the lease is {other}s, but that of the nodes which are there is 6s");
        assert!(error.to_string().starts_with(&text), "{error}");
    }
    connect(6).await.expect("it is theirs").drain(LONG).await;
    first.drain(LONG).await;
    let _longer = connect(30).await.expect("nobody is left");
    let error = refused(6).await;
    assert!(matches!(error, ConnectError::Lease { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_servers_may_lose_one() {
    let mut servers = NatsCluster::start_with(&NatsServer::settings().jet_stream());
    let connect = async |urls: String| {
        let settings = ClusterSettings::new(&urls).expect("addresses");
        let settings = settings.connect_timeout(LONG);
        Cluster::connect(settings).await.expect("it connects")
    };
    let one = connect(servers.urls()).await;
    let system = ActorSystem::new().expect("a system");
    let published = one.publish("counters", &spawn(&system, "one"));
    let _published = published.expect("it is new");
    let two = connect(servers.urls()).await;
    two.member_known::<Counter>("counters").await;
    let counters: Remote<Counter> = two.actor("counters").expect("a name");
    assert_eq!(counters.add(1).ask().await.expect("a reply"), 1);
    servers.servers[0].kill();
    let delivered = loop {
        if let Ok(delivered) = counters.add(1).id("x").deliver().await {
            break delivered;
        }
    };
    assert_eq!(&*delivered.id, "x");
    while counters.add(0).ask().await.ok() != Some(2) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_connection_is_said() {
    let plain = NatsServer::start();
    let settings = ClusterSettings::new(&plain.url()).expect("an address");
    let error = Cluster::connect(settings)
        .await
        .expect_err("it has no JetStream");
    assert!(matches!(error, ConnectError::NoJetStream { .. }), "{error}");
    assert!(
        error.to_string().ends_with("start it with `-js`"),
        "{error}"
    );
    assert!(ClusterSettings::new("nats://h:4222,http://[").is_err());
    let settings = ClusterSettings::new(&plain.url()).expect("an address");
    let error = Cluster::connect(settings.lease(Duration::from_millis(5))).await;
    let error = error.expect_err("it is too short");
    assert_eq!(
        error.to_string(),
        "the lease is 5ms, but must be 1 s to 1 h"
    );
    let settings = ClusterSettings::new(&plain.url()).expect("an address");
    let error = Cluster::connect(settings.prefix("a.b"))
        .await
        .expect_err("a dot");
    assert!(
        error
            .to_string()
            .starts_with("the prefix `a.b` cannot be used")
    );
}

/// A reply that cannot be encoded.
#[derive(Debug)]
struct Explosive;

impl Serialize for Explosive {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("as it is wont to")
    }
}

impl<'de> Deserialize<'de> for Explosive {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Self)
    }
}

struct Miner;

impl Actor for Miner {}

#[messages(remote = "miner.v1")]
impl Miner {
    #[message]
    fn mine(&mut self, is_explosive: bool) -> Option<Explosive> {
        is_explosive.then_some(Explosive)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_whose_encoding_panics_is_an_error_and_others_are_served() {
    let server = server();
    let host = node(&server).await;
    let system = ActorSystem::new().expect("a system");
    let published = host.publish("miners", &system.spawn(|| Miner));
    let _published = published.expect("it is new");
    let cluster = node(&server).await;
    cluster.member_known::<Miner>("miners").await;
    let miners: Remote<Miner> = cluster.actor("miners").expect("a name");
    let error = miners.mine(true).ask().await.expect_err("it panics");
    assert!(matches!(error, RemoteError::Failed { .. }), "{error}");
    assert!(miners.mine(false).ask().await.expect("a reply").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_left_waits_for_no_announcement() {
    let server = server();
    let host = host(&server, "one").await;
    host.cluster.drain(LONG).await;
    let announced = timeout(LONG, host.publication.announced()).await;
    announced.expect("nobody will hear of this node");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_reported_wait_panics_stays() {
    let server = server();
    let host = node(&server).await;
    let system = ActorSystem::new().expect("a system");
    let settings = PublishSettings::default();
    let settings = settings.reported_wait(|| panic!("as a user's function may"));
    let published = host.publish_with("counters", &spawn(&system, "one"), settings);
    let _published = published.expect("it is new");
    let (_node, counters) = caller(&server).await;
    assert_eq!(counters.add(1).ask().await.expect("a reply"), 1);
    assert_eq!(counters.add(1).ask().await.expect("a reply"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_message_whose_reply_panics_is_dead_in_the_end() {
    let server = server();
    let settings = ClusterSettings::new(&server.url()).expect("an address");
    let settings = settings.connect_timeout(LONG).failures_max(1);
    let cluster = Cluster::connect(settings).await.expect("it connects");
    let system = ActorSystem::new().expect("a system");
    let published = cluster.publish("miners", &system.spawn(|| Miner));
    let _published = published.expect("it is new");
    let miners: Remote<Miner> = cluster.actor("miners").expect("a name");
    let delivered = miners.mine(true).deliver().await;
    delivered.expect("it is taken");
    while cluster.status().dead_letters == 0 {
        tokio::task::yield_now().await;
    }
}
