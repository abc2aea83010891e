//! Nodes that are killed or paused while they have an entity.

use std::time::Duration;

use greenroom_cluster::Remote;

use crate::account::{Account, AccountRemoteMessages, LONG, account, host, node, server};
use crate::child::{ChildNode, SHARED};

/// Short, because to wait for its end is the point of these tests.
const LEASE: Duration = Duration::from_secs(1);
/// The first number that the test itself adds: above all of those that the child adds.
const MINE: u64 = 1 << 32;

/// Adds a number, as often as it takes until it surely was, each time another one.
async fn add_surely(account: &Remote<Account>, next: &mut u64) -> u64 {
    loop {
        *next += 1;
        if let Ok(Ok(())) = account.add(*next).ask().await {
            return *next;
        }
    }
}

/// Checks that each number is there which was acknowledged, and none twice.
fn check(amounts: &[u64], added: &[u64]) {
    let count = |number: &u64| amounts.iter().filter(|amount| *amount == number).count();
    let lost: Vec<_> = added.iter().filter(|number| count(number) == 0).collect();
    assert!(
        lost.is_empty(),
        "acknowledged and lost: {lost:?} of {amounts:?}"
    );
    let twice: Vec<_> = amounts.iter().filter(|number| count(number) > 1).collect();
    assert!(twice.is_empty(), "applied twice: {twice:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_entity_of_a_node_that_was_killed_goes_on_at_another() {
    let server = server();
    let mut child = ChildNode::start(&server.url(), LEASE).await;
    let mut added = child.progress().await;
    let caller = node(&server.url(), LEASE).await;
    caller.host_known::<Account>().await;
    let at_child = account(&caller, SHARED).fence().timeout(LONG).ask().await;
    let fence = at_child.expect("the child has it");
    added.extend(child.kill().await);
    let host = host(&server.url(), LEASE).await;
    let account = account(&host.cluster, SHARED);
    let mut next = MINE;
    added.push(add_surely(&account, &mut next).await);
    assert_eq!(host.hosting.status().entities, 1);
    let now = account.fence().timeout(LONG).ask().await.expect("a reply");
    assert!(now > fence, "{now} {fence}");
    let amounts = account.amounts().timeout(LONG).ask().await;
    check(&amounts.expect("a reply"), &added);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_gave_up_while_it_could_not_renew_is_free_once_it_hosts_no_more() {
    let server = server();
    let a = host(&server.url(), LEASE).await;
    let caller = node(&server.url(), LEASE).await;
    caller.host_known::<Account>().await;
    let at_a = account(&caller, "1");
    let added = at_a.add(1).timeout(LONG).ask().await;
    added.expect("a reply").expect("it is saved");
    server.freeze();
    while a.hosting.status().entities > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.thaw();
    a.hosting.announced().await;
    assert!(a.hosting.leave(LONG).await);
    let b = host(&server.url(), LEASE).await;
    let at_b = account(&b.cluster, "1");
    let amounts = at_b.amounts().timeout(LONG).ask().await;
    assert_eq!(amounts.expect("nobody has it"), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_paused_does_not_overwrite_what_others_did_meanwhile() {
    let server = server();
    let mut child = ChildNode::start(&server.url(), LEASE).await;
    let mut added = child.progress().await;
    let host = host(&server.url(), LEASE).await;
    let caller = node(&server.url(), LEASE).await;
    caller.host_known::<Account>().await;
    let account = account(&caller, SHARED);
    let mut next = MINE;
    child.pause();
    while host.hosting.status().entities == 0 {
        added.push(add_surely(&account, &mut next).await);
    }
    child.go_on();
    // The child goes on too, and its numbers come to where the entity is now.
    added.extend(child.progress().await);
    added.push(add_surely(&account, &mut next).await);
    added.extend(child.kill().await);
    let amounts = account.amounts().timeout(LONG).ask().await;
    check(&amounts.expect("a reply"), &added);
}
