//! Several nodes that live.

use std::time::Duration;

use futures_util::future::join_all;

use crate::account::{Account, AccountRemoteMessages, LONG, account, host, node, server};

/// Long enough that no lease ends on a machine that is busy.
const LEASE: Duration = LONG;

#[tokio::test(flavor = "multi_thread")]
async fn each_entity_is_active_at_one_node_whoever_asks() {
    let server = server();
    let url = server.url();
    let (a, b) = tokio::join!(host(&url, LEASE), host(&url, LEASE));
    let caller = node(&server.url(), LEASE).await;
    caller.host_known::<Account>().await;
    let ids: Vec<_> = (0..50).map(|id| id.to_string()).collect();
    for round in 0..2 {
        let asked = ids.iter().flat_map(|id| {
            let clusters = [&a.cluster, &b.cluster, &caller];
            clusters.map(|cluster| async move {
                let account = account(cluster, id);
                let added = account.add(round).timeout(LONG).ask().await;
                added.expect("a reply").expect("it is saved");
            })
        });
        join_all(asked).await;
    }
    let (at_a, at_b) = (a.hosting.status(), b.hosting.status());
    assert_eq!(at_a.activated + at_b.activated, 50, "{at_a:?} {at_b:?}");
    assert!(
        at_a.activated > 0 && at_b.activated > 0,
        "{at_a:?} {at_b:?}"
    );
    for id in &ids {
        let amounts = account(&caller, id).amounts().ask().await.expect("a reply");
        assert_eq!(amounts, [0, 0, 0, 1, 1, 1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_go_on_at_another_node_when_theirs_leaves() {
    let server = server();
    let a = host(&server.url(), LEASE).await;
    let caller = node(&server.url(), LEASE).await;
    caller.host_known::<Account>().await;
    let ids: Vec<_> = (0..20).map(|id| id.to_string()).collect();
    for id in &ids {
        account(&caller, id).add(1).tell().await.expect("it has it");
    }
    let b = host(&server.url(), LEASE).await;
    let leaving = a.hosting.leave(LONG);
    let asking = join_all(ids.iter().map(|id| async {
        let account = account(&caller, id);
        let added = account.add(2).timeout(LONG).ask().await;
        added.expect("a reply").expect("it is saved");
        account
            .amounts()
            .timeout(LONG)
            .ask()
            .await
            .expect("a reply")
    }));
    let (has_left, amounts) = tokio::join!(leaving, asking);
    assert!(has_left);
    assert!(
        amounts.iter().all(|amounts| *amounts == [1, 2]),
        "{amounts:?}"
    );
    for id in &ids {
        let amounts = account(&caller, id).amounts().timeout(LONG).ask().await;
        assert_eq!(amounts.expect("a reply"), [1, 2]);
    }
    assert_eq!(b.hosting.status().entities, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_leaves_does_not_wait_for_ever_and_gives_all_leases_back() {
    let server = server();
    let a = host(&server.url(), LEASE).await;
    let caller = node(&server.url(), LEASE).await;
    caller.host_known::<Account>().await;
    let account = account(&caller, "1");
    account.add(1).tell().await.expect("it has it");
    account.hang().tell().await.expect("it has it");
    assert!(!a.hosting.leave(Duration::from_millis(50)).await);
    let _b = host(&server.url(), LEASE).await;
    caller.host_known::<Account>().await;
    let amounts = account.amounts().timeout(LONG / 2).ask().await;
    assert_eq!(amounts.expect("its node lives, and has given it up"), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn durable_messages_are_applied_once_wherever_they_arrive() {
    let server = server();
    let caller = node(&server.url(), LEASE).await;
    let accounts: Vec<_> = (0..4).map(|id| account(&caller, &id.to_string())).collect();
    for amount in 0..10 {
        for account in &accounts {
            account.add(amount).deliver().await.expect("it is taken");
        }
    }
    let url = server.url();
    let (a, b) = tokio::join!(host(&url, LEASE), host(&url, LEASE));
    caller.host_known::<Account>().await;
    for account in &accounts {
        let mut amounts = Vec::new();
        while amounts.len() < 10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            amounts = account
                .amounts()
                .timeout(LONG)
                .ask()
                .await
                .expect("a reply");
        }
        amounts.sort_unstable();
        assert_eq!(amounts, (0..10).collect::<Vec<_>>());
    }
    assert!(a.hosting.leave(LONG).await && b.hosting.leave(LONG).await);
}
