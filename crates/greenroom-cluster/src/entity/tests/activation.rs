//! Entities that come and go.

use std::time::Duration;

use tokio::time::{Instant, advance, sleep};

use super::account::{Add, Begin, Explode, Fail, LEASE, Node, Read, Wait, gate};
use crate::entity::lease::LocalNodes;
use crate::entity::{HostSettings, MemoryStorage, StateError};
use crate::wire::Rejection;

fn node() -> Node {
    let leases = LocalNodes::new().register("a");
    Node::new(leases, MemoryStorage::new(), HostSettings::default())
}

async fn amounts(node: &Node, id: &str) -> Vec<u64> {
    node.ask(id, Read).await.expect("it is active").0
}

/// Waits until this many entities are active, in paused time.
async fn until_active(node: &Node, entities: usize) {
    while node.host.status().entities != entities {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_message_activates_and_the_state_outlives_the_activation() {
    let node = node();
    assert_eq!(node.ask("1", Add(5)).await, Ok(Ok(vec![5])));
    let (_, first) = node.ask("1", Read).await.expect("it is active");
    advance(Duration::from_secs(119)).await;
    assert_eq!(node.ask("1", Add(6)).await, Ok(Ok(vec![5, 6])));
    assert_eq!(node.host.status().activated, 1);
    let used = Instant::now();
    until_active(&node, 0).await;
    assert!(used.elapsed() >= HostSettings::PASSIVATE_AFTER_DEFAULT);
    let (amounts, second) = node.ask("1", Read).await.expect("it is active");
    assert_eq!(amounts, [5, 6]);
    assert!(second > first, "{second} {first}");
    let status = node.host.status();
    assert_eq!((status.activated, status.passivated), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn messages_keep_their_order_and_entities_do_not_wait_for_each_other() {
    let node = node();
    let waiting = node.ask("order", Wait(0));
    let adding = futures_util::future::join_all((1..100).map(|n| node.ask("order", Add(n))));
    let other = async {
        node.ask("other", Add(1))
            .await
            .expect("it is active")
            .expect("saved");
        gate("order").add_permits(1);
    };
    let (waited, added, ()) = tokio::join!(waiting, adding, other);
    assert_eq!(waited, Ok(Ok(vec![0])));
    assert!(added.iter().all(|added| matches!(added, Ok(Ok(_)))));
    assert_eq!(amounts(&node, "order").await, (0..100).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn an_entity_that_panics_begins_anew_with_what_is_stored() {
    let node = node();
    let (_, first) = node.ask("1", Read).await.expect("it is active");
    let failed = node.ask("1", Fail(1)).await;
    assert!(
        matches!(failed, Err(Rejection::Failed { .. })),
        "{failed:?}"
    );
    let (amounts, second) = node.ask("1", Read).await.expect("it is active again");
    assert_eq!(amounts, [1], "it was saved before the panic");
    assert!(second > first);
}

#[tokio::test(start_paused = true)]
async fn a_type_that_panics_when_it_is_decoded_costs_one_activation() {
    let node = node();
    assert_eq!(node.ask("1", Add(1)).await, Ok(Ok(vec![1])));
    let (exploded, next) = tokio::join!(node.ask("1", Explode), node.ask("1", Read));
    assert!(
        matches!(exploded, Err(Rejection::Failed { .. })),
        "{exploded:?}"
    );
    let (read, _) = next.expect("it waited with it, and is handled by the next activation");
    assert_eq!(read, [1]);
    assert_eq!(amounts(&node, "1").await, [1]);
    assert_eq!(node.host.status().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_save_that_is_not_waited_for_ends_the_activation() {
    let storage = super::limits::Slow::new(Duration::from_secs(1));
    let leases = LocalNodes::new().register("a");
    let node = Node::new(leases, storage, HostSettings::default());
    assert_eq!(node.ask("1", Add(1)).await, Ok(Ok(vec![1])));
    assert_eq!(node.ask("1", Begin(2)).await, Ok(Err(StateError::Ended)));
    assert_eq!(amounts(&node, "1").await, [1]);
}

#[tokio::test(start_paused = true)]
async fn all_entities_end_with_the_lease_of_the_node() {
    let node = node();
    node.held_until.send_replace(Some(Instant::now() + LEASE));
    assert_eq!(node.ask("1", Add(5)).await, Ok(Ok(vec![5])));
    let waiting = node.ask("lease", Wait(1));
    let ending = async {
        sleep(LEASE).await;
        let rejected = node.ask("1", Read).await.expect_err("there is no lease");
        assert!(
            matches!(rejected, Rejection::NotActive { .. }),
            "{rejected}"
        );
    };
    let (waited, ()) = tokio::join!(waiting, ending);
    assert!(waited.is_err(), "it could not have been saved: {waited:?}");
    until_active(&node, 0).await;
    node.held_until.send_replace(Some(Instant::now() + LEASE));
    assert_eq!(amounts(&node, "1").await, [5]);
    assert_eq!(node.host.status().activated, 3);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_drains_lets_its_entities_finish_and_gives_their_leases_back() {
    let (nodes, storage) = (LocalNodes::new(), MemoryStorage::new());
    let [a, b] = ["a", "b"].map(|name| {
        let leases = nodes.register(name);
        Node::new(leases, storage.clone(), HostSettings::default())
    });
    assert_eq!(a.ask("1", Add(1)).await, Ok(Ok(vec![1])));
    let waiting = tokio::join!(
        a.ask("drain", Wait(1)),
        a.ask("drain", Add(2)),
        // It refuses from the call on, not from the first poll.
        async { a.host.drain().await },
        async {
            sleep(Duration::from_secs(1)).await;
            let rejected = a.ask("1", Add(2)).await;
            assert_eq!(rejected, Err(Rejection::Draining));
            let node = "a".to_owned();
            let moved = b.ask("drain", Read).await;
            assert_eq!(moved, Err(Rejection::Moved { node }), "it is active there");
            gate("drain").add_permits(1);
        }
    );
    assert_eq!(
        (waiting.0, waiting.1),
        (Ok(Ok(vec![1])), Ok(Ok(vec![1, 2])))
    );
    assert_eq!(a.host.status().entities, 0);
    assert_eq!(amounts(&b, "1").await, [1]);
    assert_eq!(amounts(&b, "drain").await, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_told_is_acknowledged_before_it_is_handled() {
    let node = node();
    let mut request = super::account::request("told", &Wait(1), None);
    request.timeout = None;
    let told = crate::wire::Inbound::handle(std::sync::Arc::clone(&node.host), request).await;
    assert_eq!(told.outcome.map(|reply| reply.len()), Ok(0));
    gate("told").add_permits(1);
    assert_eq!(amounts(&node, "told").await, [1]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_handled_is_rejected_with_the_reason() {
    let node = node();
    let handle = |request| crate::wire::Inbound::handle(std::sync::Arc::clone(&node.host), request);
    let mut request = super::account::request("1", &Read, None);
    request.message = "write".into();
    let known = ["add", "begin", "explode", "fail", "peek", "read", "wait"];
    let known = known.map(str::to_owned).to_vec();
    let outcome = handle(request).await.outcome;
    assert_eq!(outcome, Err(Rejection::NoSuchMessage { known }));
    assert_eq!(node.host.status().activated, 0);
    let mut request = super::account::request("1", &Add(1), None);
    request.payload = b"\xc1"[..].into();
    let outcome = handle(request).await.outcome;
    assert!(
        matches!(outcome, Err(Rejection::NotDecoded { .. })),
        "{outcome:?}"
    );
    assert_eq!(amounts(&node, "1").await, [0_u64; 0]);
    assert_eq!(
        node.host.status().activated,
        1,
        "it was no fault of the entity"
    );
}

#[tokio::test(start_paused = true)]
async fn a_text_that_cannot_be_read_is_not_repeated_as_a_whole() {
    let mut request = super::account::request("1", &Add(1), None);
    let text = crate::codec::encode(&"x".repeat(100_000));
    request.payload = text.expect("it can be encoded");
    let response = crate::wire::Inbound::handle(node().host, request).await;
    let rejection = response.outcome.expect_err("it is no number");
    assert!(matches!(rejection, Rejection::NotDecoded { .. }));
    assert!(rejection.to_string().len() < 2_000, "{rejection}");
}
