//! The entity and the group of the runs.

use std::sync::OnceLock;
use std::time::Duration;

use greenroom_actor::{Actor, messages};
use greenroom_cluster::serde::{Deserialize, Serialize};
use greenroom_cluster::{Activation, Entity, StateError, Stored};
use tokio::time::sleep;

use crate::history::{Event, Pen};

/// The longest pause of an entity in the middle of a change, mostly and in one of so many cases, so
/// that faults fall into it.
const THINKING_MAX_MS: u64 = 8;
const LONG_THINKING_MAX_MS: u64 = 400;
const LONG_ONE_IN: u32 = 16;

/// The log of this process.
pub(crate) static PEN: OnceLock<Pen> = OnceLock::new();

pub(crate) fn note(event: &Event) {
    PEN.get().expect("the process has a log").write(event);
}

/// An entity with a list that is only ever appended to.
pub(crate) struct Journal {
    entity: u32,
    fence: u64,
    state: Stored<Entries>,
}

/// The state of a [`Journal`]: the operations that changed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "greenroom_cluster::serde")]
pub(crate) struct Entries {
    pub(crate) ops: Vec<u64>,
}

impl Actor for Journal {}

impl Entity for Journal {
    type State = Entries;
}

#[messages(remote = "journal.v1")]
impl Journal {
    pub(crate) fn new(activation: Activation<Entries>) -> Self {
        Self {
            entity: activation.id.as_str().parse().expect("a number"),
            fence: activation.fence,
            state: activation.state,
        }
    }

    /// Appends, and returns the place of the entry. For asks.
    #[message]
    pub(crate) async fn append(&mut self, op: u64) -> Result<u64, StateError> {
        think().await;
        self.add(op).await
    }

    /// Appends if the list is so long, or else returns its length as the inner error.
    #[message]
    pub(crate) async fn swap(
        &mut self,
        expected: u64,
        op: u64,
    ) -> Result<Result<u64, u64>, StateError> {
        let length = self.state.ops.len() as u64;
        if length != expected {
            return Ok(Err(length));
        }
        think().await;
        self.add(op).await.map(Ok)
    }

    /// Appends, as a durable message: it is saved when this has returned.
    #[message]
    pub(crate) async fn post(&mut self, op: u64) -> Result<(), StateError> {
        think().await;
        self.state.update(|entries| entries.ops.push(op)).await
    }

    /// Returns the list.
    #[message]
    pub(crate) fn read(&mut self) -> Vec<u64> {
        self.state.ops.clone()
    }
}

impl Journal {
    async fn add(&mut self, op: u64) -> Result<u64, StateError> {
        let place = self.state.ops.len() as u64;
        self.state.update(|entries| entries.ops.push(op)).await?;
        let (entity, fence) = (self.entity, self.fence);
        note(&Event::Saved { entity, fence, op });
        Ok(place)
    }
}

async fn think() {
    let is_long = fastrand::u32(..LONG_ONE_IN) == 0;
    let max_ms = [THINKING_MAX_MS, LONG_THINKING_MAX_MS][usize::from(is_long)];
    sleep(Duration::from_millis(fastrand::u64(..=max_ms))).await;
}

/// A member of a group that writes down what it handles.
pub(crate) struct Sink;

impl Actor for Sink {}

#[messages(remote = "sink.v1")]
impl Sink {
    #[message]
    pub(crate) fn handle(&mut self, op: u64) {
        note(&Event::Handled { op });
    }
}
