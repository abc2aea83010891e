use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use greenroom_server::FieldNames;
use http::{HeaderMap, StatusCode};
use slab::Slab;

use super::parse::Malformed;
use crate::pool::{Charge, Settlement};

/// How many bytes of a streamed body a worker sends ahead of its client; as PROTOCOL.md says.
const STREAM_WINDOW: usize = 262_144;

/// Status and header fields of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// How the application spells their names.
    pub(crate) names: FieldNames,
}

/// A file that the worker holds open as an answer's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentFile {
    pub(crate) descriptor: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// How an answer begins.
#[derive(Debug)]
pub(super) enum Beginning {
    Whole(Head, Bytes),
    Streamed(Head),
    File(Head, SentFile),
    /// The application said what HTTP forbids.
    Malformed(Malformed),
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    /// The application gave up half way.
    BrokenOff,
    /// The worker is gone.
    Lost(Lost),
}

/// What is known of a request whose worker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It never reached the worker.
    Unsent,
    /// Others were before it: most likely it was not begun.
    Behind,
    /// It was begun, or nobody knows.
    Begun,
}

/// Where a request stands among those of its worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) charge: Charge,
    /// See [`Run::behind`](crate::pool::Run::behind).
    pub(super) behind: Option<u64>,
    /// It may be given to another worker while this one is held up.
    pub(super) recallable: bool,
}

/// Whether a run may take as long as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exempt {
    No,
    /// While the worker waits for the client, which is no fault of its own.
    WhileStalled,
    /// It has a connection of its own.
    Always,
}

/// What the worker has of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// A run.
    Run,
    /// No run any more, but the request goes on, or went on.
    Waiting,
    /// Nothing.
    Nothing,
}

/// Whether anybody here still wants the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Yes,
    /// From another worker.
    Elsewhere,
    No,
}

/// A request that was sent to a worker, until neither side knows it any more.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) sequence: u64,
    pub(super) place: Place,
    pub(super) hold: Hold,
    pub(super) wanted: Wanted,
    pub(super) exempt: Exempt,
    pub(super) has_begun: bool,
    /// The worker holds a file open for it.
    pub(super) holds_file: bool,
    pub(super) waker: Option<Waker>,
    pub(super) informational: Vec<Head>,
    pub(super) beginning: Option<Beginning>,
    pub(super) body: VecDeque<Bytes>,
    /// Bytes of a streamed body that the worker was not told the client has taken.
    pub(super) unacknowledged: usize,
    /// There when the worker sends no more of it.
    pub(super) end: Option<End>,
}

/// The sequence of the first request that holds a run: the one that the worker is at, as far as this
/// link knows.
pub(super) fn first_held(entries: &Slab<Entry>) -> Option<u64> {
    let held = entries.iter().filter(|(_, entry)| entry.hold == Hold::Run);
    held.map(|(_, entry)| entry.sequence).min()
}

impl Entry {
    pub(super) fn new(sequence: u64, place: Place) -> Self {
        Self {
            sequence,
            place,
            hold: Hold::Run,
            wanted: Wanted::Yes,
            exempt: Exempt::No,
            has_begun: false,
            holds_file: false,
            waker: None,
            informational: Vec::new(),
            beginning: None,
            body: VecDeque::new(),
            unacknowledged: 0,
            end: None,
        }
    }

    /// Whether the worker, which has given back so many runs, cannot have come to this one.
    pub(super) fn is_behind_as_of(&self, released: Option<u64>) -> bool {
        let is_untouched = self.hold == Hold::Run && !self.has_begun;
        is_untouched && self.place.behind.is_some() && self.place.behind == released
    }

    /// The run may take as long as it likes for the time being.
    pub(super) fn exempt(&mut self, exempt: Exempt, settlement: &mut Settlement) {
        if self.exempt == Exempt::No && self.hold == Hold::Run {
            self.exempt = exempt;
            settlement.exempted += 1;
        }
    }

    /// The run is given back, or may not take as long as it likes any more.
    pub(super) fn end_exemption(&mut self, settlement: &mut Settlement) {
        if self.exempt != Exempt::No {
            self.exempt = Exempt::No;
            settlement.no_longer_exempt += 1;
        }
    }

    /// More of the body came from the worker.
    pub(super) fn add(&mut self, bytes: Bytes, settlement: &mut Settlement) {
        self.unacknowledged += bytes.len();
        self.body.push_back(bytes);
        if self.unacknowledged >= STREAM_WINDOW {
            self.exempt(Exempt::WhileStalled, settlement);
        }
    }

    /// The worker is told that the client has taken so much.
    pub(super) fn acknowledge(&mut self, bytes: usize, settlement: &mut Settlement) {
        self.unacknowledged -= bytes;
        settlement.progress = true;
        if self.exempt == Exempt::WhileStalled {
            self.end_exemption(settlement);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.wanted == Wanted::No
    }

    pub(super) fn end(&mut self, end: End) {
        self.end = Some(end);
        self.wake();
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
