//! The history of a run: what each process saw, one JSON line an event.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use greenroom_cluster::serde::{Deserialize, Serialize};
use parking_lot::Mutex;

/// An event, as the process that saw it wrote it down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "greenroom_cluster::serde")]
pub(crate) enum Event {
    /// The process has joined the cluster.
    Joined,
    /// A client begins an operation, or repeats that of a durable message.
    Begun { op: u64, work: Work },
    /// The operation has ended, or the try of it.
    Ended {
        op: u64,
        outcome: Outcome,
        took_ms: u64,
        limit_ms: u64,
    },
    /// The error that an operation ended with, for who reads the history.
    Error { op: u64, error: String },
    /// The longest time by which a task of this client ran late.
    Lateness { ms: u64 },
    /// A member of the group handled a durable message.
    Handled { op: u64 },
    /// An activation was told that its write succeeded.
    Saved { entity: u32, fence: u64, op: u64 },
    /// A record that the storage took, in the order of revisions.
    Record {
        entity: u32,
        revision: u64,
        fence: u64,
        ops: Vec<u64>,
    },
    /// A claim of an entity's lease, in the order of revisions; by nobody if it was released.
    Claim {
        entity: u32,
        revision: u64,
        node: String,
    },
    /// The state of an entity at the end, as it says itself; `None` if it never did.
    Final { entity: u32, ops: Option<Vec<u64>> },
    /// The durable messages that were still not handled when the wait for them ended.
    Left { messages: u64 },
}

/// An operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "greenroom_cluster::serde")]
pub(crate) enum Work {
    /// An ask that appends to an entity's list.
    Append { entity: u32 },
    /// An ask that appends if the list is so long.
    Swap { entity: u32, expected: u64 },
    /// A durable message that appends to an entity's list.
    DurableAppend { entity: u32 },
    /// A durable message to the group.
    DurableGroup,
}

/// The outcome of an operation, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "greenroom_cluster::serde")]
pub(crate) enum Outcome {
    /// It is done: the entry has this place. A durable message is acknowledged.
    Done { place: Option<u64> },
    /// It was surely not done.
    NotDone,
    /// Nobody knows whether it was done.
    Unknown,
}

/// The events of one process, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) process: String,
    pub(crate) events: Vec<Event>,
}

/// The file that a process writes its events to. An event is with the system, and so outlives the
/// process, before what it tells of goes on.
#[derive(Debug)]
pub(crate) struct Pen(Mutex<File>);

impl Pen {
    pub(crate) fn open(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Self(Mutex::new(file.expect("the directory is there")))
    }

    pub(crate) fn write(&self, event: &Event) {
        let mut line = serde_json::to_vec(event).expect("it is JSON");
        line.push(b'\n');
        self.0.lock().write_all(&line).expect("there is room");
    }
}

impl Log {
    /// Reads what a process wrote. The last line of one that was killed may be cut off.
    pub(crate) fn read(path: &Path) -> Self {
        let process = path.file_stem().unwrap_or_default().to_string_lossy();
        let events = File::open(path).map(|file| {
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            lines
                .map_while(|line| serde_json::from_str(&line).ok())
                .collect()
        });
        Self {
            process: process.into_owned(),
            events: events.unwrap_or_default(),
        }
    }
}
