//! A cluster of one process, without a server.

use futures_util::FutureExt;
use greenroom_actor::ActorSystem;
use greenroom_cluster::{
    Cluster, MemberChange, PublishError, PublishSettings, Remote, RemoteError,
};
use tokio::sync::mpsc;

use crate::counter::{Counter, CounterRemoteMessages, GATES, LONG, spawn};
use crate::nodes::Watcher;

fn counters(cluster: &Cluster) -> Remote<Counter> {
    cluster.actor("counters").expect("a name")
}

#[tokio::test]
async fn a_message_and_its_reply_go_through() {
    let system = ActorSystem::new().expect("a system");
    let (cluster, actor) = (Cluster::local(), spawn(&system, "one"));
    let publication = cluster.publish("counters", &actor).expect("it is new");
    let counters = counters(&cluster);
    assert_eq!(counters.add(1).ask().await.expect("a reply"), 1);
    counters.add(2).tell().await.expect("it is there");
    assert_eq!(counters.add(3).ask().await.expect("a reply"), 6);
    assert!(publication.leave(LONG).await);
    let error = counters.add(1).ask().await.expect_err("nobody is left");
    assert!(matches!(error, RemoteError::NoSuch { .. }), "{error}");
    assert!(error.is_unhandled());
}

#[tokio::test]
async fn who_watches_a_group_is_told_of_its_member() {
    let system = ActorSystem::new().expect("a system");
    let (cluster, actor) = (Cluster::local(), spawn(&system, "one"));
    let (sender, mut events) = mpsc::unbounded_channel();
    let watcher = system.spawn(move || Watcher(sender.clone()));
    assert!(cluster.watch::<Counter>("counters", watcher.recipient()));
    let known = cluster.member_known::<Counter>("counters");
    assert!(known.now_or_never().is_none(), "nothing is published");
    let _publication = cluster.publish("counters", &actor).expect("it is new");
    cluster.member_known::<Counter>("counters").await;
    let mut next = async || {
        let event = events.recv().await.expect("the watcher lives");
        assert_eq!(event.node, *cluster.node());
        event.change
    };
    assert_eq!(next().await, MemberChange::Joined);
    actor.stop();
    assert_eq!(next().await, MemberChange::Left);
}

#[tokio::test]
async fn a_member_whose_reported_wait_panics_goes_on() {
    let system = ActorSystem::new().expect("a system");
    let (cluster, actor) = (Cluster::local(), spawn(&system, "one"));
    let settings = PublishSettings::default().in_flight_max(1);
    let settings = settings.reported_wait(|| panic!("as a user's function may"));
    let published = cluster.publish_with("counters", &actor, settings);
    let _published = published.expect("it is new");
    let counters = counters(&cluster);
    assert_eq!(counters.add(1).ask().await.expect("a reply"), 1);
    assert_eq!(counters.add(1).ask().await.expect("a reply"), 2);
}

#[tokio::test]
async fn errors_say_what_happened() {
    let system = ActorSystem::new().expect("a system");
    let (cluster, actor) = (Cluster::local(), spawn(&system, "one"));
    let counters = counters(&cluster);
    let error = counters
        .add(1)
        .ask()
        .await
        .expect_err("it is not published");
    let text = "no node has the group `counters` of counter.v1";
    assert_eq!(error.to_string(), text);
    let _publication = cluster.publish("counters", &actor).expect("it is new");
    let again = cluster
        .publish("counters", &actor)
        .expect_err("it is there");
    assert!(matches!(again, PublishError::Taken { .. }), "{again}");
    let error = counters.fail().ask().await.expect_err("it panics");
    assert!(matches!(error, RemoteError::Failed { .. }), "{error}");
    let error = counters.echo("x".repeat(600_000)).ask().await;
    let error = error.expect_err("it is too large");
    let text = "`echo` has 600011 bytes when encoded; at most 524288 are allowed";
    assert_eq!(error.to_string(), text);
    assert!(cluster.actor::<Counter>("a b").is_err());
}

#[tokio::test(start_paused = true)]
async fn an_ask_ends_with_its_deadline() {
    let system = ActorSystem::new().expect("a system");
    let (cluster, actor) = (Cluster::local(), spawn(&system, "one"));
    let _publication = cluster.publish("counters", &actor).expect("it is new");
    let asked = counters(&cluster);
    let asked = asked.wait(0).timeout(std::time::Duration::from_secs(2));
    let error = asked.ask().await.expect_err("nobody lets it go on");
    assert!(matches!(error, RemoteError::Late { .. }), "{error}");
    assert!(!error.is_unhandled());
    GATES[0].add_permits(1);
}

#[tokio::test(start_paused = true)]
async fn a_durable_message_comes_again_until_it_is_handled() {
    let system = ActorSystem::new().expect("a system");
    let (cluster, actor) = (Cluster::local(), spawn(&system, "one"));
    let counters = counters(&cluster);
    let delivery = counters.add(5).deliver().await.expect("it is taken");
    assert!(!delivery.is_duplicate);
    let _publication = cluster.publish("counters", &actor).expect("it is new");
    while counters.add(0).ask().await.expect("a reply") != 5 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
