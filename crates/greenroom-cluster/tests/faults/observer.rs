//! The observer reads what the stores took, in the order in which they took it.

use std::time::{Duration, Instant};

use async_nats::jetstream::{self, Context, stream};
use bytes::{Buf, Bytes};
use futures_util::{StreamExt, TryStreamExt, stream as streams};
use greenroom_cluster::Remote;
use tokio::time::sleep;

use crate::actors::{Entries, Journal, JournalRemoteMessages, note};
use crate::history::Event;
use crate::node::{ENTITIES, Node, connect};
use crate::tell;

const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The records of an entity that are kept, far more than a run writes.
const HISTORY: i64 = 100_000;
/// The wait for a response of the servers: while they elect a leader there is none.
const JETSTREAM_TIMEOUT: Duration = Duration::from_secs(1);
const ASK_TIMEOUT: Duration = Duration::from_secs(2);
/// The records that are read at a time.
const READ_AT_A_TIME: usize = 32;

/// Makes the buckets of leases and states before the nodes do, so that they keep every record and
/// not the last one of each key: so they tell themselves what they took, and in which order.
pub(crate) async fn prepare(node: &Node) {
    let jetstream = servers(node).await;
    for bucket in ["leases", "states"] {
        while let Err(error) = make(&jetstream, node, bucket).await {
            tell(&format!("not made yet: {error}"));
            sleep(AGAIN_AFTER).await;
        }
    }
}

async fn make(
    jetstream: &Context,
    node: &Node,
    bucket: &str,
) -> Result<(), jetstream::context::CreateStreamError> {
    let name = format!("{}_{bucket}", node.prefix);
    let config = stream::Config {
        name: format!("KV_{name}"),
        subjects: vec![format!("$KV.{name}.>")],
        max_messages_per_subject: HISTORY,
        discard: stream::DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: false,
        num_replicas: 3,
        ..Default::default()
    };
    jetstream.get_or_create_stream(config).await.map(drop)
}

/// Waits until all durable messages are handled and the entities say what they have, or until the
/// deadline.
pub(crate) async fn observe(node: &Node, deadline: Instant) {
    let jetstream = servers(node).await;
    let messages = left(&jetstream, node, deadline).await;
    note(&Event::Left { messages });
    let cluster = connect(node).await;
    for entity in 0..ENTITIES {
        let journal: Remote<Journal> = cluster.entity(u64::from(entity)).expect("an id");
        let ops = read(&journal, deadline).await;
        note(&Event::Final { entity, ops });
    }
}

/// Reads the stores. No host runs any more: what a link held back may change them as late as that.
pub(crate) async fn read_stores(node: &Node) {
    let jetstream = servers(node).await;
    for (revision, entity, value) in records(&jetstream, node, "leases").await {
        let node = String::from_utf8(value.to_vec()).expect("an id");
        note(&Event::Claim {
            entity,
            revision,
            node,
        });
    }
    for (revision, entity, value) in records(&jetstream, node, "states").await {
        let (fence, ops) = decode(value).expect("a record");
        note(&Event::Record {
            entity,
            revision,
            fence,
            ops,
        });
    }
}

/// Connects to the servers, also if none of them is there yet.
async fn servers(node: &Node) -> Context {
    loop {
        let servers: Vec<_> = node.servers.split(',').collect();
        match async_nats::connect(servers).await {
            Ok(client) => {
                let mut jetstream = jetstream::new(client);
                jetstream.set_timeout(JETSTREAM_TIMEOUT);
                return jetstream;
            }
            Err(_) => sleep(AGAIN_AFTER).await,
        }
    }
}

/// Returns the number of durable messages that are not handled, when it is 0 or the time is over.
async fn left(jetstream: &Context, node: &Node, deadline: Instant) -> u64 {
    let name = format!("{}_durable", node.prefix);
    let mut left = u64::MAX;
    while left > 0 && Instant::now() < deadline {
        if let Ok(stream) = jetstream.get_stream(&name).await {
            left = stream.cached_info().state.messages;
        }
        sleep(AGAIN_AFTER).await;
    }
    left
}

async fn read(journal: &Remote<Journal>, deadline: Instant) -> Option<Vec<u64>> {
    loop {
        match journal.read().timeout(ASK_TIMEOUT).ask().await {
            Ok(ops) => return Some(ops),
            Err(error) if Instant::now() >= deadline => {
                tell(&format!("{journal:?} does not say what it has: {error}"));
                return None;
            }
            Err(_) => sleep(AGAIN_AFTER).await,
        }
    }
}

/// Reads a whole bucket from the leader of its servers.
async fn records(jetstream: &Context, node: &Node, bucket: &str) -> Vec<(u64, u32, Bytes)> {
    loop {
        match try_records(jetstream, node, bucket).await {
            Ok(records) => return records,
            Err(error) => tell(&format!("not read yet: {error}")),
        }
        sleep(AGAIN_AFTER).await;
    }
}

async fn try_records(
    jetstream: &Context,
    node: &Node,
    bucket: &str,
) -> Result<Vec<(u64, u32, Bytes)>, async_nats::Error> {
    let name = format!("KV_{}_{bucket}", node.prefix);
    let stream = jetstream.get_stream(&name).await?;
    let state = &stream.cached_info().state;
    let revisions = state.first_sequence..=state.last_sequence;
    let messages = streams::iter(revisions.filter(|revision| *revision > 0))
        .map(|revision| stream.get_raw_message(revision))
        .buffered(READ_AT_A_TIME);
    let messages: Vec<_> = messages.try_collect().await?;
    let read = messages.into_iter().map(|message| {
        let (_, id) = message.subject.rsplit_once('.').ok_or("no key")?;
        Ok((message.sequence, id.parse()?, message.payload))
    });
    read.collect()
}

/// Reads a record of the bucket of states: the fence, and unless it is empty the content, which is
/// the format (1), the ids of durable messages, and the state.
fn decode(mut record: Bytes) -> Option<(u64, Vec<u64>)> {
    let fence = record.try_get_u64().ok()?;
    if record.is_empty() {
        return Some((fence, Vec::new()));
    }
    let format = record.try_get_u8().ok()?;
    assert_eq!(format, 1, "another format of records");
    for _ in 0..record.try_get_u32().ok()? {
        let length = record.try_get_u32().ok()?;
        record.advance(usize::try_from(length).ok()?);
    }
    let entries: Entries = rmp_serde::from_slice(&record).ok()?;
    Some((fence, entries.ops))
}
