//! The buckets and streams of a cluster, made by the first node that connects.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::CreateStreamError;
use async_nats::jetstream::{self, Context, kv, stream};
use futures_util::TryStreamExt;

use super::Subjects;
use super::connect::ConnectError;
use crate::deliver::DUPLICATE_WINDOW;
use crate::settings::Limits;

/// Dead letters beyond this many bytes push out the oldest.
const DEAD_BYTES_MAX: i64 = 64 << 20;

pub(crate) struct Stores {
    pub(crate) jetstream: Context,
    /// The records of the nodes that live.
    pub(crate) nodes: kv::Store,
    config_of_nodes: stream::Config,
    /// The owners of entities.
    pub(crate) leases: kv::Store,
    /// The states of entities.
    pub(crate) states: kv::Store,
    /// Durable messages.
    pub(crate) durable: stream::Stream,
}

impl Stores {
    pub(crate) async fn open(
        client: &Client,
        subjects: &Subjects,
        limits: &Limits,
    ) -> Result<Self, ConnectError> {
        let jetstream = jetstream::new(client.clone());
        let prefix = &limits.prefix;
        let is_cluster = client.server_info().cluster.is_some();
        let replicas = limits.replicas.unwrap_or(if is_cluster { 3 } else { 1 });
        let bucket = |name: &str, description: &str| Bucket {
            name: format!("{prefix}_{name}"),
            description: description.to_owned(),
            replicas,
        };
        let nodes = bucket("nodes", "Nodes that live");
        let nodes = stream::Config {
            max_age: limits.lease,
            duplicate_window: limits.lease.min(DUPLICATE_WINDOW),
            // On disk, though short-lived: a server that restarts would forget the bucket itself.
            ..nodes.config()
        };
        let leases = bucket("leases", "The node of each active entity").config();
        let states = bucket("states", "The states of entities").config();
        let durable = stream::Config {
            name: format!("{prefix}_durable"),
            description: Some("Messages until they are handled".to_owned()),
            subjects: vec![subjects.all_durable()],
            retention: stream::RetentionPolicy::WorkQueue,
            discard: stream::DiscardPolicy::New,
            max_bytes: limits.durable_bytes_max,
            max_age: limits.durable_age_max,
            duplicate_window: DUPLICATE_WINDOW.min(limits.durable_age_max),
            num_replicas: replicas,
            ..Default::default()
        };
        let dead = stream::Config {
            name: format!("{prefix}_dead"),
            description: Some("Messages that could not be handled".to_owned()),
            subjects: vec![subjects.all_dead()],
            max_bytes: DEAD_BYTES_MAX,
            num_replicas: replicas,
            ..Default::default()
        };
        jetstream.get_or_create_stream(dead).await?;
        Ok(Self {
            nodes: open_nodes(&jetstream, &nodes).await?,
            config_of_nodes: nodes,
            leases: open(&jetstream, leases).await?,
            states: open(&jetstream, states).await?,
            durable: jetstream.get_or_create_stream(durable).await?,
            jetstream,
        })
    }

    /// Makes the bucket of nodes if it is gone, as after a loss of the servers' disks.
    pub(crate) async fn restore_nodes(&self) -> Result<(), CreateStreamError> {
        let made = self.jetstream.get_or_create_stream(&self.config_of_nodes);
        made.await.map(drop)
    }

    /// Checks that the records of nodes end after this lease.
    pub(crate) async fn check_lease(&self, lease: Duration) -> Result<(), ConnectError> {
        let there = self.nodes.stream.get_info().await;
        let theirs = there.map_err(ConnectError::join)?.config.max_age;
        if theirs != lease {
            return Err(ConnectError::Lease { lease, theirs });
        }
        Ok(())
    }
}

/// A bucket that is to be there.
struct Bucket {
    name: String,
    description: String,
    replicas: usize,
}

impl Bucket {
    /// Returns the stream of the bucket, as the clients of NATS make it (ADR-8), but that only the
    /// leader of its servers reads it: what a follower has may be old.
    // The client's own function asks for the account first, and cannot read what servers before
    // 2.10 say of it.
    fn config(&self) -> stream::Config {
        stream::Config {
            name: format!("KV_{}", self.name),
            description: Some(self.description.clone()),
            subjects: vec![format!("$KV.{}.>", self.name)],
            max_messages_per_subject: 1,
            discard: stream::DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: false,
            num_replicas: self.replicas,
            ..Default::default()
        }
    }
}

/// Opens the bucket of nodes, or makes it. Another lease than that of nodes which live is refused:
/// their records would end too soon, or too late, for one of them.
async fn open_nodes(
    jetstream: &Context,
    config: &stream::Config,
) -> Result<kv::Store, ConnectError> {
    let nodes = open(jetstream, config.clone()).await?;
    let there = &nodes.stream.cached_info().config;
    if there.max_age == config.max_age {
        return Ok(nodes);
    }
    let refused = || ConnectError::Lease {
        lease: config.max_age,
        theirs: there.max_age,
    };
    if has_records(&nodes).await? {
        return Err(refused());
    }
    let changed = stream::Config {
        max_age: config.max_age,
        duplicate_window: config.duplicate_window,
        ..there.clone()
    };
    jetstream.update_stream(changed).await?;
    // A node may have come between the look and the change.
    if has_records(&nodes).await? {
        jetstream.update_stream(there).await?;
        return Err(refused());
    }
    Ok(nodes)
}

async fn has_records(bucket: &kv::Store) -> Result<bool, ConnectError> {
    let mut keys = bucket.keys().await.map_err(ConnectError::join)?;
    let first = keys.try_next().await.map_err(ConnectError::join)?;
    Ok(first.is_some())
}

/// Opens a bucket, or makes it.
async fn open(jetstream: &Context, config: stream::Config) -> Result<kv::Store, ConnectError> {
    let bucket = config.name.trim_start_matches("KV_").to_owned();
    jetstream.get_or_create_stream(config).await?;
    let opened = jetstream.get_key_value(&bucket).await;
    opened.map_err(|error| ConnectError::Bucket { bucket, error })
}
