use bytes::Bytes;
use futures_util::future::BoxFuture;
use greenroom_actor::BoxError;

use super::{Claim, Leases};
use crate::entity::Key;
use crate::entity::kv::{Bucket, NotReplaced};
use crate::node::Record;

/// The tries to replace a record that others replace meanwhile. Each failed one means that another
/// node has succeeded.
const TRIES_MAX: u32 = 4;

/// Leases in a bucket of `JetStream`: for each entity a record with the id of the node that has it,
/// empty if none has. The fence is the revision of the record.
///
/// A node counts as registered while its record is in the bucket of nodes, and does not say that
/// the host of this lease has ended: a node that gave up an idle entity as its own lease was over
/// leaves the entity's behind, and may host it no more. A lagging look there, or at the lease, can
/// only fail to get a lease, or take one from a node that lives.
#[derive(Debug)]
pub(crate) struct JetStreamLeases {
    leases: Bucket,
    nodes: Bucket,
    node: Box<str>,
}

impl JetStreamLeases {
    /// Creates the leases of a node. The key of a record in `nodes` is the node's id.
    pub(crate) fn new(leases: Bucket, nodes: Bucket, node: &str) -> Self {
        Self {
            leases,
            nodes,
            node: node.into(),
        }
    }

    async fn try_claim(&self, key: &Key) -> Result<Claim, BoxError> {
        let name = key.name();
        for _ in 0..TRIES_MAX {
            let last = self.leases.last(&name).await?;
            if let Some(node) = self
                .other_holder(key.kind(), last.value, last.revision)
                .await?
            {
                return Ok(Claim::HeldBy { node });
            }
            let mine = Bytes::copy_from_slice(self.node.as_bytes());
            match self.leases.replace(&name, mine, last.revision).await {
                Ok(fence) => return Ok(Claim::Owned { fence }),
                Err(NotReplaced::Conflict) => {}
                Err(NotReplaced::Unknown(error)) => return Err(error),
            }
        }
        Err(format!("others claim {key} too: not got in {TRIES_MAX} tries").into())
    }

    /// Returns the registered node that holds a lease of this kind, if it is not this one.
    async fn other_holder(
        &self,
        kind: &str,
        lease: Option<Bytes>,
        fence: u64,
    ) -> Result<Option<String>, BoxError> {
        let Some(lease) = lease else { return Ok(None) };
        let node = std::str::from_utf8(&lease)?;
        if node.is_empty() || *node == *self.node {
            return Ok(None);
        }
        let Some(record) = self.nodes.last(node).await?.value else {
            return Ok(None);
        };
        // A record that cannot be read is of a node that lives.
        let record = serde_json::from_slice::<Record>(&record).unwrap_or_default();
        Ok((!record.has_ended(kind, fence)).then(|| node.to_owned()))
    }

    async fn try_release(&self, key: &Key, fence: u64) -> Result<(), BoxError> {
        match self.leases.replace(&key.name(), Bytes::new(), fence).await {
            Ok(_) | Err(NotReplaced::Conflict) => Ok(()),
            Err(NotReplaced::Unknown(error)) => Err(error),
        }
    }
}

impl Leases for JetStreamLeases {
    fn claim<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Claim, BoxError>> {
        Box::pin(self.try_claim(key))
    }

    fn release<'a>(&'a self, key: &'a Key, fence: u64) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(self.try_release(key, fence))
    }
}
