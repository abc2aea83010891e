//! Limits, and what comes of messages beyond them.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::account::{Add, Node, Read, Wait, gate};
use crate::entity::lease::LocalNodes;
use crate::entity::{HostSettings, Key, Loaded, MemoryStorage, StateError, Storage, StorageFuture};
use crate::wire::Rejection;

const BUSY: Rejection = Rejection::Busy { wait_ms: None };

fn node(settings: HostSettings) -> Node {
    Node::new(
        LocalNodes::new().register("a"),
        MemoryStorage::new(),
        settings,
    )
}

/// A storage that takes its time.
pub(super) struct Slow {
    storage: MemoryStorage,
    loading: Duration,
    saving: Duration,
}

impl Slow {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            loading: time,
            ..Self::to_save(time)
        }
    }

    pub(super) fn to_save(time: Duration) -> Self {
        Self {
            storage: MemoryStorage::new(),
            loading: Duration::ZERO,
            saving: time,
        }
    }
}

impl Storage for Slow {
    fn load<'a>(&'a self, key: &'a Key, fence: u64) -> StorageFuture<'a, Loaded> {
        Box::pin(async move {
            sleep(self.loading).await;
            self.storage.load(key, fence).await
        })
    }

    fn save<'a>(
        &'a self,
        key: &'a Key,
        fence: u64,
        version: u64,
        content: Bytes,
    ) -> StorageFuture<'a, u64> {
        Box::pin(async move {
            sleep(self.saving).await;
            self.storage.save(key, fence, version, content).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_entity_makes_room_and_a_busy_one_does_not() {
    let node = node(HostSettings::default().active_max(2));
    for id in ["room1", "room2", "room3"] {
        assert_eq!(node.ask(id, Add(1)).await, Ok(Ok(vec![1])), "{id}");
    }
    assert!(
        node.host.status().entities <= 2 + 1,
        "one may be on its way out"
    );
    assert_eq!(node.host.status().passivated, 1);
    let both = futures_util::future::join(node.ask("room1", Wait(2)), node.ask("room2", Wait(2)));
    let third = async {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(node.ask("room3", Add(2)).await, Err(BUSY));
        gate("room1").add_permits(1);
        gate("room2").add_permits(1);
    };
    let (both, ()) = tokio::join!(both, third);
    assert_eq!(both, (Ok(Ok(vec![1, 2])), Ok(Ok(vec![1, 2]))));
    assert_eq!(node.ask("room3", Add(2)).await, Ok(Ok(vec![1, 2])));
}

#[tokio::test(start_paused = true)]
async fn messages_beyond_the_limits_are_rejected() {
    let node = node(HostSettings::default().queue_max(2).in_flight_max(4));
    let first = node.ask("queue", Wait(1));
    let rest = async {
        sleep(Duration::from_secs(1)).await;
        let waiting = tokio::join!(
            node.ask("queue", Add(2)),
            node.ask("queue", Add(3)),
            node.ask("queue", Add(4)),
            node.ask("other", Add(5)),
            async {
                let full = node.ask("another", Add(6)).await;
                gate("queue").add_permits(1);
                full
            }
        );
        assert_eq!(waiting.2, Err(BUSY), "two wait for this entity");
        assert_eq!(waiting.4, Err(BUSY), "four are under way");
        (waiting.0, waiting.1)
    };
    let (first, rest) = tokio::join!(first, rest);
    assert_eq!(first, Ok(Ok(vec![1])));
    assert_eq!(rest, (Ok(Ok(vec![1, 2])), Ok(Ok(vec![1, 2, 3]))));
    assert_eq!(node.host.status().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_too_large_is_not_saved() {
    let node = node(HostSettings::default().state_bytes_max(1_024));
    let mut saved = Vec::new();
    let refused = loop {
        match node.ask("1", Add(u64::MAX)).await.expect("it is active") {
            Ok(amounts) => saved = amounts,
            Err(error) => break error,
        }
    };
    let StateError::TooLarge { bytes, bytes_max } = refused else {
        panic!("{refused}");
    };
    assert!((1_025..1_100).contains(&bytes), "{bytes}");
    assert_eq!(bytes_max, 1_024);
    let (amounts, _) = node.ask("1", Read).await.expect("it is active");
    assert_eq!(amounts, saved, "it goes on with what is stored");
    let rejected = node.deliver("1", "x", Add(u64::MAX)).await;
    let error = "the state has 1029 bytes, and may have 1024".to_owned();
    assert_eq!(rejected, Err(Rejection::Failed { error }));
}

#[tokio::test(start_paused = true)]
async fn an_activation_that_takes_too_long_is_given_up() {
    let settings = HostSettings::default();
    let storage = Slow::new(HostSettings::ACTIVATION_TIMEOUT_DEFAULT * 2);
    let node = Node::new(LocalNodes::new().register("a"), storage, settings);
    let waiting = tokio::join!(node.ask("1", Add(1)), node.ask("1", Add(2)));
    let error = "it took longer than 10s".to_owned();
    let rejection = Rejection::NotActive { error };
    assert_eq!(waiting, (Err(rejection.clone()), Err(rejection)));
    assert_eq!(node.host.status().entities, 0);
}

#[tokio::test(start_paused = true)]
async fn an_activation_that_is_given_up_gives_its_lease_back() {
    let (registered, settings) = (LocalNodes::new(), HostSettings::default());
    let hung = Slow::new(HostSettings::ACTIVATION_TIMEOUT_DEFAULT * 2);
    let a = Node::new(registered.register("a"), hung, settings.clone());
    let b = Node::new(registered.register("b"), MemoryStorage::new(), settings);
    let given_up = a.ask("1", Add(1)).await;
    assert!(
        matches!(given_up, Err(Rejection::NotActive { .. })),
        "{given_up:?}"
    );
    assert_eq!(b.ask("1", Add(1)).await, Ok(Ok(vec![1])));
}

#[tokio::test(start_paused = true)]
async fn an_entity_that_does_not_come_to_an_end_is_ended() {
    let node = node(HostSettings::default());
    assert_eq!(node.ask("hangs", Add(1)).await, Ok(Ok(vec![1])));
    let (hung, next) = tokio::join!(node.ask("hangs", Wait(2)), node.ask("hangs", Add(3)));
    assert_eq!(hung, Err(Rejection::Late));
    assert_eq!(next, Ok(Ok(vec![1, 3])));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waited_past_its_deadline_is_not_handled() {
    let node = node(HostSettings::default());
    let mut late = super::account::request("deadline", &Add(2), None);
    late.timeout = Some(Duration::from_secs(1));
    let waiting = node.ask("deadline", Wait(1));
    let late = async {
        let host = std::sync::Arc::clone(&node.host);
        let late = crate::wire::Inbound::handle(host, late).await;
        gate("deadline").add_permits(1);
        late.outcome
    };
    let (waited, late) = tokio::join!(waiting, late);
    assert_eq!((waited, late), (Ok(Ok(vec![1])), Err(Rejection::Late)));
    let (amounts, _) = node.ask("deadline", Read).await.expect("it is active");
    assert_eq!(amounts, [1]);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_entities_are_activated_at_a_time() {
    let second = Duration::from_secs(1);
    let settings = HostSettings::default().activating_max(2);
    let node = Node::new(LocalNodes::new().register("a"), Slow::new(second), settings);
    let begin = tokio::time::Instant::now();
    let ids: Vec<_> = (0..8).map(|id| id.to_string()).collect();
    let asked = ids.iter().map(|id| node.ask(id, Read));
    let replies = futures_util::future::join_all(asked).await;
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    let took = begin.elapsed();
    assert!(
        took >= 4 * second && took < 5 * second,
        "two by two: {took:?}"
    );
}
