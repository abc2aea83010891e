//! Two nodes that would have the same entity.

use super::account::{Add, Node, Read, Wait, gate};
use crate::entity::lease::LocalNodes;
use crate::entity::{HostSettings, MemoryStorage, StateError};
use crate::wire::Rejection;

fn nodes(nodes: &LocalNodes) -> [Node; 2] {
    let storage = MemoryStorage::new();
    ["a", "b"].map(|name| {
        let leases = nodes.register(name);
        Node::new(leases, storage.clone(), HostSettings::default())
    })
}

#[tokio::test(start_paused = true)]
async fn of_two_nodes_one_has_an_entity_and_the_other_says_which() {
    let [a, b] = nodes(&LocalNodes::new());
    for id in 0..100 {
        let id = id.to_string();
        let (one, other) = tokio::join!(a.ask(&id, Add(1)), b.ask(&id, Add(1)));
        assert_eq!(one, Ok(Ok(vec![1])));
        let node = "a".to_owned();
        assert_eq!(other, Err(Rejection::Moved { node }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_lost_an_entity_without_knowing_cannot_save_it() {
    let registered = LocalNodes::new();
    let [a, b] = nodes(&registered);
    assert_eq!(a.ask("late", Add(1)).await, Ok(Ok(vec![1])));
    let late = a.ask("late", Wait(2));
    let taking_over = async {
        registered.expire("a");
        // It is enough that the other has it: it need not have written.
        assert_eq!(b.ask("late", Read).await.expect("it is active").0, [1]);
        gate("late").add_permits(1);
    };
    let (late, ()) = tokio::join!(late, taking_over);
    assert_eq!(late, Ok(Err(StateError::Fenced)));
    let node = "b".to_owned();
    assert_eq!(a.ask("late", Read).await, Err(Rejection::Moved { node }));
    assert_eq!(b.ask("late", Add(4)).await, Ok(Ok(vec![1, 4])));
    assert_eq!(a.host.status().fenced, 1);
}

#[tokio::test(start_paused = true)]
async fn a_durable_message_that_was_fenced_is_handled_by_the_other() {
    let registered = LocalNodes::new();
    let [a, b] = nodes(&registered);
    let late = a.deliver("durable", "x", Wait(1));
    let taking_over = async {
        tokio::task::yield_now().await;
        registered.expire("a");
        assert_eq!(b.ask("durable", Add(2)).await, Ok(Ok(vec![2])));
        gate("durable").add_permits(1);
    };
    let (late, ()) = tokio::join!(late, taking_over);
    let late = late.expect_err("it was not saved");
    assert!(late.is_passing(), "{late}");
    gate("durable").add_permits(1);
    b.deliver("durable", "x", Wait(1))
        .await
        .expect("it is handled");
    b.deliver("durable", "x", Wait(1))
        .await
        .expect("it was handled");
    let (amounts, _) = b.ask("durable", Read).await.expect("it is active");
    assert_eq!(amounts, [2, 1]);
}
