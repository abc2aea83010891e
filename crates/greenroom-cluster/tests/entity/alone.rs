//! Entities of one process, without a server.

use std::time::Duration;

use greenroom_actor::ActorSystem;
use greenroom_cluster::{Cluster, HostError, PublishError, RemoteError};

use crate::account::{
    Account, AccountRemoteMessages, LONG, NewAccount, NewAccountRemoteMessages, account, host_at,
};

#[tokio::test(start_paused = true)]
async fn an_entity_is_there_when_it_is_asked_for() {
    let cluster = Cluster::local();
    let (hosting, _system) = host_at(&cluster);
    let (one, other) = (account(&cluster, "1"), account(&cluster, "größe/2 *"));
    one.add(5)
        .ask()
        .await
        .expect("a reply")
        .expect("it is saved");
    one.add(6).tell().await.expect("it has it");
    other
        .add(7)
        .ask()
        .await
        .expect("a reply")
        .expect("it is saved");
    assert_eq!(one.amounts().ask().await.expect("a reply"), [5, 6]);
    assert_eq!(other.amounts().ask().await.expect("a reply"), [7]);
    let status = &cluster.status().hosts[0];
    assert_eq!(
        (status.kind, status.entities, status.activated),
        ("account", 2, 2)
    );
    assert!(hosting.leave(LONG).await);
    assert!(cluster.status().hosts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_comes_later_is_waited_for() {
    let cluster = Cluster::local();
    let host = async {
        tokio::task::yield_now().await;
        host_at(&cluster)
    };
    let ((_hosting, _system), ()) = tokio::join!(host, cluster.host_known::<Account>());
}

/// Each of the twenty failures takes a minute, and the pause behind it another.
#[tokio::test(start_paused = true)]
async fn a_durable_message_whose_handler_hangs_becomes_a_dead_letter() {
    let cluster = Cluster::local();
    let (_hosting, _system) = host_at(&cluster);
    let account = account(&cluster, "1");
    account.hang().deliver().await.expect("it is taken");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(cluster.status().dead_letters, 1);
    // The entity goes on.
    let amounts = account.amounts().ask().await;
    assert_eq!(amounts.expect("a reply"), [0_u64; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_told_message_whose_handler_hangs_is_a_dead_letter() {
    let cluster = Cluster::local();
    let (_hosting, _system) = host_at(&cluster);
    account(&cluster, "1")
        .hang()
        .tell()
        .await
        .expect("it has it");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(cluster.status().dead_letters, 1);
}

#[tokio::test(start_paused = true)]
async fn a_state_outlives_the_host_of_its_entity() {
    let cluster = Cluster::local();
    let (hosting, _system) = host_at(&cluster);
    let account = account(&cluster, "1");
    account
        .add(5)
        .ask()
        .await
        .expect("a reply")
        .expect("it is saved");
    let fence = account.fence().ask().await.expect("a reply");
    assert!(hosting.leave(LONG).await);
    let error = account.amounts().ask().await.expect_err("nobody hosts it");
    assert!(matches!(error, RemoteError::NoSuch { .. }), "{error}");
    let (_hosting, _system) = host_at(&cluster);
    assert_eq!(account.amounts().ask().await.expect("a reply"), [5]);
    assert!(account.fence().ask().await.expect("a reply") > fence);
}

#[tokio::test(start_paused = true)]
async fn a_durable_message_is_applied_once() {
    let cluster = Cluster::local();
    let (hosting, _system) = host_at(&cluster);
    let account = account(&cluster, "1");
    for _ in 0..2 {
        account.add(5).id("x").deliver().await.expect("it is taken");
    }
    account.add(6).id("y").deliver().await.expect("it is taken");
    while account.amounts().ask().await.expect("a reply").len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(hosting.leave(LONG).await);
    let (_hosting, _system) = host_at(&cluster);
    let mut amounts = account.amounts().ask().await.expect("a reply");
    amounts.sort_unstable();
    assert_eq!(amounts, [5, 6]);
}

#[tokio::test(start_paused = true)]
async fn errors_say_what_is_wrong() {
    let cluster = Cluster::local();
    let error = account(&cluster, "1").fence().ask().await;
    let error = error.expect_err("nobody hosts it").to_string();
    assert_eq!(error, "no node has the entity `1` of account.v1");
    let (_hosting, _system) = host_at(&cluster);
    let newer = cluster.entity::<NewAccount>("1").expect("it is an id");
    let error = newer.rest().ask().await.expect_err("it is not hosted");
    assert!(matches!(error, RemoteError::NoSuch { .. }), "{error}");
    for id in ["", &"x".repeat(257)] {
        let error = cluster.entity::<Account>(id).expect_err("it is no id");
        assert!(
            error.to_string().contains("1 to 256 bytes are allowed"),
            "{error}"
        );
    }
    let system = ActorSystem::new().expect("a system");
    let taken = |hosted: Result<_, HostError>| {
        matches!(hosted, Err(HostError::Publish(PublishError::Taken { .. })))
    };
    assert!(taken(cluster.host(&system, Account::new)));
    assert!(
        taken(cluster.host(&system, |_| NewAccount)),
        "another version of the kind"
    );
}
