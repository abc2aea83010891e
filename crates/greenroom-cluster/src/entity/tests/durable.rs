//! Durable messages: each changes an entity's state once.

use std::time::Duration;

use tokio::time::advance;

use super::account::{Account, Add, Fail, Node, Peek, Read, Wait, gate};
use super::limits::Slow;
use crate::entity::content;
use crate::entity::lease::LocalNodes;
use crate::entity::{HostSettings, Key, MemoryStorage, Storage};
use crate::names::EntityId;
use crate::remote::RemoteActor;
use crate::wire::Rejection;

fn node(settings: HostSettings) -> Node {
    Node::new(
        LocalNodes::new().register("a"),
        MemoryStorage::new(),
        settings,
    )
}

async fn amounts(node: &Node, id: &str) -> Vec<u64> {
    node.ask(id, Read).await.expect("it is active").0
}

#[tokio::test(start_paused = true)]
async fn a_durable_message_that_comes_again_changes_nothing() {
    let node = node(HostSettings::default());
    for _ in 0..2 {
        node.deliver("1", "x", Add(1)).await.expect("it is handled");
    }
    node.deliver("1", "y", Add(2)).await.expect("it is handled");
    // Nor does it after a passivation, or for another entity.
    advance(2 * HostSettings::PASSIVATE_AFTER_DEFAULT).await;
    while node.host.status().entities > 0 {
        tokio::task::yield_now().await;
    }
    node.deliver("1", "x", Add(1))
        .await
        .expect("it was handled");
    assert_eq!(amounts(&node, "1").await, [1, 2]);
    node.deliver("2", "x", Add(1)).await.expect("it is handled");
    assert_eq!(amounts(&node, "2").await, [1]);
}

#[tokio::test(start_paused = true)]
async fn two_deliveries_at_once_are_applied_once() {
    let node = node(HostSettings::default());
    let one = node.deliver("twice", "x", Wait(1));
    let other = node.deliver("twice", "x", Wait(1));
    gate("twice").add_permits(2);
    assert_eq!(tokio::join!(one, other), (Ok(()), Ok(())));
    assert_eq!(amounts(&node, "twice").await, [1]);
}

#[tokio::test(start_paused = true)]
async fn another_message_of_the_same_id_is_another_one() {
    let node = node(HostSettings::default());
    node.deliver("same", "x", Add(1))
        .await
        .expect("it is handled");
    gate("same").add_permits(1);
    node.deliver("same", "x", Wait(2))
        .await
        .expect("it is handled");
    assert_eq!(amounts(&node, "same").await, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_has_the_outcome_of_the_message_that_it_waited_behind() {
    let node = node(HostSettings::default());
    gate("copies").add_permits(2);
    // One that fails, and one that is handled and saves nothing.
    let fail = || node.deliver("failing", "x", Fail(1));
    let failed = tokio::join!(fail(), fail());
    assert!(failed.0.is_err() && failed.0 == failed.1, "{failed:?}");
    let peek = || node.deliver("copies", "x", Peek);
    assert_eq!(
        tokio::join!(peek(), peek(), peek()),
        (Ok(()), Ok(()), Ok(()))
    );
    assert_eq!(
        node.ask("copies", Peek).await,
        Ok(2),
        "the others were not handled"
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_too_slow_has_failed() {
    let node = node(HostSettings::default());
    let slow = node.deliver("slow", "x", Wait(1)).await;
    let error = "it was not handled within 1m".to_owned();
    assert_eq!(slow, Err(Rejection::Failed { error }));
    let late = node.ask("slow", Wait(1)).await;
    assert_eq!(late, Err(Rejection::Late));
}

#[tokio::test(start_paused = true)]
async fn a_save_without_an_end_is_given_up() {
    let storage = Slow::to_save(Duration::MAX);
    let node = Node::new(
        LocalNodes::new().register("a"),
        storage,
        HostSettings::default(),
    );
    let hung = node.deliver("1", "x", Add(1)).await;
    let error = "its state was not saved within 1m".to_owned();
    assert_eq!(hung, Err(Rejection::NotActive { error }));
    node.host.drain().await;
}

#[tokio::test(start_paused = true)]
async fn old_ids_are_forgotten_by_entities_that_are_passivated_again_and_again() {
    let storage = MemoryStorage::new();
    let settings = HostSettings::default();
    let node = Node::new(LocalNodes::new().register("a"), storage.clone(), settings);
    for id in 0..200 {
        let id = id.to_string();
        node.deliver("1", &id, Add(0)).await.expect("it is handled");
    }
    // It stays until the first 72 are old.
    advance(Duration::from_mins(3)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(node.host.status().entities, 1);
    advance(Duration::from_mins(1)).await;
    while node.host.status().entities > 0 {
        tokio::task::yield_now().await;
    }
    let key = Key::new(Account::NAME, EntityId::from(1));
    let loaded = storage.load(&key, u64::MAX).await.expect("it is there");
    let saved = loaded.content.expect("it was saved");
    let (applied, _) = content::decode(saved, tokio::time::Instant::now()).expect("a content");
    assert_eq!(applied.len(), 128);
    assert!(!applied.contains("add/71") && applied.contains("add/72"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_has_changed_nothing() {
    let node = node(HostSettings::default());
    let failed = node.deliver("1", "x", Fail(1)).await;
    assert!(
        matches!(failed, Err(Rejection::Failed { .. })),
        "{failed:?}"
    );
    assert_eq!(amounts(&node, "1").await, [0_u64; 0]);
    node.deliver("1", "x", Add(1)).await.expect("it is handled");
    assert_eq!(amounts(&node, "1").await, [1]);
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_change_is_not_saved_is_not_acknowledged() {
    let node = node(HostSettings::default().state_bytes_max(1_024));
    // As many as fit, large ones first.
    for amount in [u64::MAX, 0] {
        let add = async || node.ask("1", Add(amount)).await.expect("it is active");
        while add().await.is_ok() {}
    }
    let saved = amounts(&node, "1").await;
    // The handler returns the error, as handlers do, and does not panic.
    let failed = node.deliver("1", "x", Add(u64::MAX)).await;
    assert!(
        matches!(failed, Err(Rejection::Failed { .. })),
        "{failed:?}"
    );
    assert_eq!(amounts(&node, "1").await, saved);
}

#[tokio::test(start_paused = true)]
async fn an_entity_does_not_forget_early_what_it_has_applied() {
    let node = node(HostSettings::default().applied_max(128));
    for id in 0..128 {
        node.deliver("1", &id.to_string(), Add(id))
            .await
            .expect("it is handled");
    }
    let busy = node.deliver("1", "128", Add(128)).await;
    let wait_ms = Some(240_000);
    assert_eq!(busy, Err(Rejection::Busy { wait_ms }));
    node.deliver("1", "0", Add(0))
        .await
        .expect("it was handled");
    advance(Duration::from_mins(4)).await;
    node.deliver("1", "128", Add(128))
        .await
        .expect("it is handled");
    assert_eq!(amounts(&node, "1").await, (0..=128).collect::<Vec<_>>());
}
