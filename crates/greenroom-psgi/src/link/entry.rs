use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use greenroom_server::FieldNames;
use http::{HeaderMap, StatusCode};
use slab::Slab;

use super::parse::Malformed;
use crate::pool::{Charge, Settlement};

/// The bytes of a streamed body that a worker sends ahead of its client; as PROTOCOL.md says.
const STREAM_WINDOW: usize = 262_144;

/// The status and header fields of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The application's spelling of the fields' names.
    pub(crate) names: FieldNames,
}

/// A file that the worker holds open as a response's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentFile {
    pub(crate) descriptor: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// The beginning of a response.
#[derive(Debug)]
pub(super) enum Beginning {
    Whole(Head, Bytes),
    Streamed(Head),
    File(Head, SentFile),
    /// The application's response violates HTTP.
    Malformed(Malformed),
}

/// The end of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    /// The application gave up half way.
    Aborted,
    /// The worker is gone.
    Lost(Lost),
}

/// The progress of a request when its worker was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It never reached the worker.
    Unsent,
    /// Others were before it: most likely it was not begun.
    Behind,
    /// It was begun, or that is unknown.
    Begun,
}

/// The place of a request among those of its worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) charge: Charge,
    /// See [`Run::behind`](crate::pool::Run::behind).
    pub(super) behind: Option<u64>,
    /// True if another worker may get it while this one is blocked.
    pub(super) recallable: bool,
}

/// The exemption of a run from the worker's time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exempt {
    No,
    /// Exempt while the worker waits for the client, which is not the application's fault.
    WhileStalled,
    /// Exempt for good: it has a connection of its own.
    Always,
}

/// The worker's state of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It holds a run.
    Run,
    /// It holds no run any more, but the request goes on, or went on.
    Waiting,
    /// It holds nothing.
    Nothing,
}

/// The demand for the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Yes,
    /// The response is to come from another worker.
    Elsewhere,
    No,
}

/// A request that was sent to a worker, kept until neither side refers to it any more.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) sequence: u64,
    pub(super) place: Place,
    pub(super) hold: Hold,
    pub(super) wanted: Wanted,
    pub(super) exempt: Exempt,
    pub(super) has_begun: bool,
    /// True while the worker holds a file open for it.
    pub(super) holds_file: bool,
    pub(super) waker: Option<Waker>,
    pub(super) informational: Vec<Head>,
    pub(super) beginning: Option<Beginning>,
    pub(super) body: VecDeque<Bytes>,
    /// The bytes of a streamed body that were not acknowledged to the worker.
    pub(super) unacknowledged: usize,
    /// `Some` when the worker sends no more of it.
    pub(super) end: Option<End>,
}

/// Returns the sequence of the first request that holds a run: the one that the worker is at, as
/// far as this link knows.
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

    /// Returns `true` if the worker, which has released that many runs, cannot have come to this
    /// one.
    pub(super) fn is_behind_as_of(&self, released: Option<u64>) -> bool {
        let is_untouched = self.hold == Hold::Run && !self.has_begun;
        is_untouched && self.place.behind.is_some() && self.place.behind == released
    }

    /// Exempts the run from the time limit for the time being.
    pub(super) fn exempt(&mut self, exempt: Exempt, settlement: &mut Settlement) {
        if self.exempt == Exempt::No && self.hold == Hold::Run {
            self.exempt = exempt;
            settlement.exempted += 1;
        }
    }

    /// Ends the exemption: the run is released, or has its time limit again.
    pub(super) fn end_exemption(&mut self, settlement: &mut Settlement) {
        if self.exempt != Exempt::No {
            self.exempt = Exempt::No;
            settlement.no_longer_exempt += 1;
        }
    }

    /// Adds a chunk of the body that came from the worker.
    pub(super) fn add(&mut self, bytes: Bytes, settlement: &mut Settlement) {
        self.unacknowledged += bytes.len();
        self.body.push_back(bytes);
        if self.unacknowledged >= STREAM_WINDOW {
            self.exempt(Exempt::WhileStalled, settlement);
        }
    }

    /// Notes that the worker learns how much the client has taken.
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
