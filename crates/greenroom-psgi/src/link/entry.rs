use std::collections::VecDeque;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use slab::Slab;

use super::parse::{Head, Malformed, SentFile};
use crate::pool::{Charge, Phase, RunEnd, Settlement};

/// The bytes of a streamed body that a worker sends ahead of its client; as PROTOCOL.md says.
const STREAM_WINDOW: usize = 262_144;

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
    pub(super) phase: Phase,
    pub(super) wanted: Wanted,
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
    let held = entries.iter().filter(|(_, entry)| entry.phase.holds_run());
    held.map(|(_, entry)| entry.sequence).min()
}

impl Entry {
    pub(super) fn new(sequence: u64, place: Place) -> Self {
        Self {
            sequence,
            place,
            phase: Phase::Running,
            wanted: Wanted::Yes,
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
        let is_untouched = self.phase.holds_run() && !self.has_begun;
        is_untouched && self.place.behind.is_some() && self.place.behind == released
    }

    /// Lets a run that has a time limit go on without one, in this phase.
    pub(super) fn exempt(&mut self, phase: Phase, settlement: &mut Settlement) {
        if self.phase == Phase::Running {
            settlement.change(&mut self.phase, phase);
        }
    }

    /// Releases the run, once. The request ends with it, or goes on without it.
    pub(super) fn release(&mut self, busy: Duration, goes_on: bool, settlement: &mut Settlement) {
        if !self.phase.holds_run() {
            return;
        }
        let is_unused = self.is_abandoned() && busy.is_zero();
        let end = if is_unused {
            RunEnd::Unused
        } else {
            RunEnd::Released(busy)
        };
        let to = match (goes_on, self.is_abandoned()) {
            (true, true) => Phase::Unwanted,
            (true, false) => Phase::Waiting,
            (false, _) if is_unused => Phase::Dropped,
            (false, _) => Phase::Served,
        };
        settlement.end_run(&mut self.phase, to, self.place.charge, end);
    }

    /// Adds a chunk of the body that came from the worker.
    pub(super) fn add(&mut self, bytes: Bytes, settlement: &mut Settlement) {
        self.unacknowledged += bytes.len();
        self.body.push_back(bytes);
        if self.unacknowledged >= STREAM_WINDOW {
            self.exempt(Phase::Stalled, settlement);
        }
    }

    /// Notes that the worker learns how much the client has taken. Only of a run that waited for it
    /// the time limit begins anew: what clients do is no sign of life of a worker.
    pub(super) fn acknowledge(&mut self, bytes: usize, settlement: &mut Settlement) {
        self.unacknowledged -= bytes;
        if self.phase == Phase::Stalled {
            settlement.progress = true;
            settlement.change(&mut self.phase, Phase::Running);
        }
    }

    /// Notes that nobody waits for the response any more.
    pub(super) fn abandon(&mut self, settlement: &mut Settlement) {
        self.wanted = Wanted::No;
        self.body.clear();
        self.beginning = None;
        match self.phase {
            // No client is waited for any more, so the time limit counts from now on.
            Phase::Stalled | Phase::Detached => {
                settlement.progress = true;
                settlement.change(&mut self.phase, Phase::Running);
            }
            Phase::Waiting => settlement.change(&mut self.phase, Phase::Unwanted),
            _ => {}
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.wanted == Wanted::No
    }

    /// Ends the request: the worker has finished with it.
    pub(super) fn finish(&mut self, end: End, settlement: &mut Settlement) {
        if matches!(self.phase, Phase::Waiting | Phase::Unwanted) {
            settlement.change(&mut self.phase, Phase::Served);
        }
        self.end = Some(end);
        self.wake();
    }

    /// Ends a request whose worker, or loop, is gone: for the pool it is over.
    pub(super) fn lose(&mut self, lost: Lost, settlement: &mut Settlement) {
        if self.phase.holds_run() {
            let has_begun = lost == Lost::Begun;
            let end = RunEnd::Lost { has_begun };
            settlement.end_run(&mut self.phase, Phase::Dropped, self.place.charge, end);
        }
        self.finish(End::Lost(lost), settlement);
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
