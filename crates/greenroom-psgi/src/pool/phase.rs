use super::charge::{Charge, RunEnd};

/// The state of a request at its worker. The number of requests in each is what the pool knows of a
/// worker's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It holds a run.
    Running,
    /// It holds a run, which has no time limit while the worker waits for the client: that is not
    /// the application's fault.
    Stalled,
    /// It holds a run, which has no time limit: it has a connection of its own.
    Detached,
    /// It holds no run any more, but goes on.
    Waiting,
    /// It goes on without a run, although its client has left.
    Unwanted,
    /// It has ended.
    Served,
    /// It was never begun, or its worker was lost.
    Dropped,
}

impl Phase {
    pub(crate) fn holds_run(self) -> bool {
        matches!(self, Self::Running | Self::Stalled | Self::Detached)
    }
}

/// The number of requests in each phase; of a settlement, by how much it has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts([i64; Phase::Dropped as usize + 1]);

impl Counts {
    pub(super) fn enter(&mut self, phase: Phase) {
        self.0[phase as usize] += 1;
    }

    pub(super) fn add(&mut self, changes: &Self) {
        let counts = self.0.iter_mut().zip(changes.0);
        counts.for_each(|(count, change)| *count += change);
    }

    /// Returns the number of requests in these phases.
    pub(super) fn of<const N: usize>(&self, phases: [Phase; N]) -> u64 {
        let count: i64 = phases.iter().map(|phase| self.0[*phase as usize]).sum();
        u64::try_from(count).unwrap_or(0)
    }
}

/// The progress of a worker since the last settlement.
#[derive(Debug, Default)]
pub(crate) struct Settlement {
    /// The runs that ended, each with its charge.
    pub(super) ended: Vec<(Charge, RunEnd)>,
    pub(super) changes: Counts,
    /// True if a frame of a run was received or sent.
    pub(crate) progress: bool,
}

impl Settlement {
    /// Moves a request to another phase. Where it loses its run by that, see
    /// [`end_run`](Self::end_run).
    pub(crate) fn change(&mut self, phase: &mut Phase, to: Phase) {
        self.changes.0[*phase as usize] -= 1;
        self.changes.enter(to);
        *phase = to;
    }

    /// Ends the run that a request holds.
    pub(crate) fn end_run(&mut self, phase: &mut Phase, to: Phase, charge: Charge, end: RunEnd) {
        self.ended.push((charge, end));
        self.change(phase, to);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.changes == Counts::default() && !self.progress
    }

    pub(super) fn clear(&mut self) {
        self.ended.clear();
        self.changes = Counts::default();
        self.progress = false;
    }
}
