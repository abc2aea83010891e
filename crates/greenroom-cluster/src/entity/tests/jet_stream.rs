//! Leases and states in a server.

use std::time::Duration;

use async_nats::jetstream::{self, Context, kv, stream};
use bytes::Bytes;
use greenroom_test_servers::{NatsCluster, NatsServer};
use tokio::time::{sleep, timeout};

use super::account::{Add, Node, Read, Wait, gate};
use crate::entity::kv::Bucket;
use crate::entity::lease::{Claim, JetStreamLeases, Leases};
use crate::entity::storage::JetStreamStorage;
use crate::entity::{HostSettings, Key, Loaded, StateError, Storage, StorageError};
use crate::names::EntityId;
use crate::wire::Rejection;

const PAYLOAD_BYTES_MAX: usize = 1 << 20;

struct Buckets {
    _servers: Vec<NatsServer>,
    jetstream: Context,
    leases: kv::Store,
    nodes: kv::Store,
    states: kv::Store,
}

impl Buckets {
    /// Makes the buckets; the records of nodes last as long as `lease`.
    async fn new(lease: Duration) -> Self {
        let server = NatsServer::settings().jet_stream().start();
        Self::at(vec![server], lease).await
    }

    /// Makes the buckets at three servers.
    async fn replicated() -> Self {
        let cluster = NatsCluster::start_with(&NatsServer::settings().jet_stream());
        Self::at(cluster.servers.into(), Duration::ZERO).await
    }

    async fn at(servers: Vec<NatsServer>, lease: Duration) -> Self {
        let client = async_nats::connect(servers[0].url()).await;
        let jetstream = jetstream::new(client.expect("it runs"));
        let make = async |bucket: &str, max_age| {
            let config = stream::Config {
                name: format!("KV_{bucket}"),
                subjects: vec![format!("$KV.{bucket}.>")],
                max_messages_per_subject: 1,
                max_age,
                allow_rollup: true,
                num_replicas: servers.len(),
                ..Default::default()
            };
            // Servers that have just started may not know each other yet.
            let made = async {
                while jetstream
                    .get_or_create_stream(config.clone())
                    .await
                    .is_err()
                {
                    sleep(Duration::from_millis(50)).await;
                }
            };
            let made = timeout(Duration::from_mins(1), made).await;
            made.expect("it is made");
            jetstream.get_key_value(bucket).await.expect("it is there")
        };
        Self {
            leases: make("leases", Duration::ZERO).await,
            nodes: make("nodes", lease).await,
            states: make("states", Duration::ZERO).await,
            jetstream,
            _servers: servers,
        }
    }

    async fn register(&self, node: &str) -> JetStreamLeases {
        self.nodes
            .put(node, "{}".into())
            .await
            .expect("it is taken");
        let bucket = |store| Bucket::new(&self.jetstream, store);
        JetStreamLeases::new(bucket(&self.leases), bucket(&self.nodes), node)
    }

    fn storage(&self) -> JetStreamStorage {
        let states = Bucket::new(&self.jetstream, &self.states);
        JetStreamStorage::new(states, PAYLOAD_BYTES_MAX)
    }

    async fn node(&self, name: &str) -> Node {
        let leases = self.register(name).await;
        Node::new(leases, self.storage(), HostSettings::default())
    }
}

fn key(id: &str) -> Key {
    Key::new("account.v1", EntityId::new(id).expect("it is short"))
}

async fn claim(leases: &JetStreamLeases, id: &str) -> Claim {
    leases.claim(&key(id)).await.expect("the server runs")
}

fn held_by(node: &str) -> Claim {
    let node = node.to_owned();
    Claim::HeldBy { node }
}

async fn owned(leases: &JetStreamLeases, id: &str) -> u64 {
    match claim(leases, id).await {
        Claim::Owned { fence } => fence,
        held @ Claim::HeldBy { .. } => panic!("{held:?}"),
    }
}

#[tokio::test]
async fn of_many_claims_at_once_one_succeeds() {
    let buckets = Buckets::new(Duration::ZERO).await;
    let mut nodes = Vec::new();
    for node in ["a", "b", "c", "d"] {
        nodes.push(buckets.register(node).await);
    }
    for id in ["1", "2*", "größe"] {
        let claims = nodes.iter().map(|node| claim(node, id));
        let claims = futures_util::future::join_all(claims).await;
        let owners = claims
            .iter()
            .filter(|claim| matches!(claim, Claim::Owned { .. }));
        assert_eq!(owners.count(), 1, "{claims:?}");
    }
}

#[tokio::test]
async fn each_claim_has_a_larger_fence_and_only_the_last_can_be_released() {
    let buckets = Buckets::new(Duration::ZERO).await;
    let (a, b) = (buckets.register("a").await, buckets.register("b").await);
    let first = owned(&a, "1").await;
    assert_eq!(claim(&b, "1").await, held_by("a"));
    let second = owned(&a, "1").await;
    assert!(second > first, "its own lease is replaced");
    a.release(&key("1"), first)
        .await
        .expect("it is not the last");
    assert_eq!(claim(&b, "1").await, held_by("a"));
    a.release(&key("1"), second)
        .await
        .expect("it is given back");
    assert!(owned(&b, "1").await > second);
}

#[tokio::test]
async fn the_lease_of_a_node_that_is_gone_is_taken() {
    let buckets = Buckets::new(Duration::ZERO).await;
    let (a, b) = (buckets.register("a").await, buckets.register("b").await);
    let first = owned(&a, "1").await;
    assert_eq!(claim(&b, "1").await, held_by("a"));
    buckets.nodes.delete("a").await.expect("it is there");
    assert!(owned(&b, "1").await > first, "it said goodbye");
}

#[tokio::test]
async fn the_lease_of_a_node_whose_entities_of_the_kind_have_ended_is_taken() {
    let buckets = Buckets::new(Duration::ZERO).await;
    let (a, b) = (buckets.register("a").await, buckets.register("b").await);
    let first = owned(&a, "1").await;
    for (ended, last, is_held) in [
        ("album", first, true),
        ("account", first - 1, true),
        ("account", first, false),
    ] {
        let record = format!(r#"{{"name":"a","entities_ended":{{"{ended}":{last}}}}}"#);
        let put = buckets.nodes.put("a", record.into()).await;
        put.expect("it is taken");
        let claimed = claim(&b, "1").await;
        assert_eq!(claimed == held_by("a"), is_held, "{claimed:?}");
    }
    assert!(owned(&b, "1").await > first);
}

#[tokio::test]
async fn the_lease_of_a_node_that_is_not_heard_of_is_taken() {
    let buckets = Buckets::new(Duration::from_secs(1)).await;
    let (a, b) = (buckets.register("a").await, buckets.register("b").await);
    let first = owned(&a, "1").await;
    let second = loop {
        match claim(&b, "1").await {
            Claim::Owned { fence } => break fence,
            held @ Claim::HeldBy { .. } => assert_eq!(held, held_by("a")),
        }
    };
    assert!(second > first);
}

#[tokio::test]
async fn nothing_is_saved_with_an_older_fence_than_was_loaded_with() {
    let storage = Buckets::new(Duration::ZERO).await;
    let (storage, _server) = (storage.storage(), storage);
    let (key, content) = (key("1"), |text: &'static str| {
        Bytes::from_static(text.as_bytes())
    });
    let first = storage.load(&key, 5).await.expect("it is new");
    assert_eq!(first.content, None);
    let version = storage.save(&key, 5, first.version, content("a")).await;
    let version = version.expect("it is the last");
    let second = storage.load(&key, 7).await.expect("it is newer");
    assert_eq!(second.content, Some(content("a")));
    let late = storage.save(&key, 5, version, content("b")).await;
    assert!(matches!(late, Err(StorageError::Fenced)), "{late:?}");
    let late = storage.load(&key, 6).await;
    assert!(matches!(late, Err(StorageError::Fenced)), "{late:?}");
    let saved = storage.save(&key, 7, second.version, content("c")).await;
    let version = saved.expect("it is the last");
    let Loaded { content: last, .. } = storage.load(&key, 7).await.expect("it is the last");
    assert_eq!(last, Some(content("c")));
    // The record is one that this activation did not write, though with its fence.
    let odd = storage.save(&key, 7, version, content("d")).await;
    assert!(matches!(odd, Err(StorageError::Failed(_))), "{odd:?}");
}

#[tokio::test]
async fn of_many_saves_at_once_to_several_servers_one_succeeds() {
    let buckets = Buckets::replicated().await;
    let (storage, key) = (buckets.storage(), key("1"));
    let mut version = storage.load(&key, 5).await.expect("it is new").version;
    for _ in 0..50 {
        let saves = (0..8_u8).map(|content| storage.save(&key, 5, version, vec![content].into()));
        let saves = futures_util::future::join_all(saves).await;
        let successes: Vec<_> = saves.iter().filter_map(|save| save.as_ref().ok()).collect();
        let [last] = successes[..] else {
            panic!("{saves:?}")
        };
        version = *last;
    }
}

#[tokio::test]
async fn a_save_whose_acknowledgement_was_lost_can_be_repeated() {
    let buckets = Buckets::new(Duration::ZERO).await;
    let (storage, key) = (buckets.storage(), key("1"));
    let loaded = storage.load(&key, 5).await.expect("it is new");
    let save = || storage.save(&key, 5, loaded.version, "a".into());
    let first = save().await.expect("it is the last");
    assert_eq!(save().await.expect("it is what was saved"), first);
}

#[tokio::test]
async fn a_state_that_the_server_does_not_take_is_refused_with_the_limit() {
    let buckets = Buckets::new(Duration::ZERO).await;
    let (storage, key) = (buckets.storage(), key("1"));
    let loaded = storage.load(&key, 5).await.expect("it is new");
    let large = Bytes::from(vec![b'x'; PAYLOAD_BYTES_MAX]);
    let refused = storage.save(&key, 5, loaded.version, large).await;
    let text = refused.expect_err("it is too large").to_string();
    assert_eq!(
        text,
        "the content has 1048576 bytes, and the storage takes 1048320"
    );
    // What is just allowed is taken by the server too.
    let large = Bytes::from(vec![b'x'; PAYLOAD_BYTES_MAX - 256]);
    let saved = storage.save(&key, 5, loaded.version, large).await;
    saved.expect("it is taken");
}

#[tokio::test]
async fn a_node_that_lost_an_entity_without_knowing_cannot_save_it() {
    let buckets = Buckets::new(Duration::ZERO).await;
    let (a, b) = (buckets.node("a").await, buckets.node("b").await);
    assert_eq!(a.ask("server", Add(1)).await, Ok(Ok(vec![1])));
    let node = "a".to_owned();
    assert_eq!(b.ask("server", Read).await, Err(Rejection::Moved { node }));
    let late = a.ask("server", Wait(2));
    let taking_over = async {
        buckets.nodes.delete("a").await.expect("it is there");
        // It is enough that the other has it: it need not have written.
        assert_eq!(b.ask("server", Read).await.expect("it is active").0, [1]);
        gate("server").add_permits(1);
    };
    let (late, ()) = tokio::join!(late, taking_over);
    assert_eq!(late, Ok(Err(StateError::Fenced)));
    let node = "b".to_owned();
    assert_eq!(a.ask("server", Read).await, Err(Rejection::Moved { node }));
    assert_eq!(b.ask("server", Add(4)).await, Ok(Ok(vec![1, 4])));
}

#[tokio::test]
async fn an_entity_goes_on_at_another_node_after_a_drain() {
    let buckets = Buckets::new(Duration::ZERO).await;
    let (a, b) = (buckets.node("a").await, buckets.node("b").await);
    for id in 0..20 {
        let added = a.ask(&id.to_string(), Add(id)).await;
        assert_eq!(added, Ok(Ok(vec![id])));
    }
    a.deliver("0", "x", Add(1)).await.expect("it is handled");
    a.host.drain().await;
    for id in 1..20 {
        let (amounts, _) = b.ask(&id.to_string(), Read).await.expect("it is free");
        assert_eq!(amounts, [id]);
    }
    b.deliver("0", "x", Add(1)).await.expect("it was handled");
    assert_eq!(b.ask("0", Read).await.expect("it is free").0, [0, 1]);
}
