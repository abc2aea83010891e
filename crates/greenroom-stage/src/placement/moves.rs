//! The latest moves of a route.

use std::collections::VecDeque;
use std::time::Instant;

use serde::Serialize;

use super::rule::Move;

/// The number of a route's moves that its status shows.
pub const MOVES_SHOWN: usize = 4;

/// The reason for a move of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveReason {
    /// It blocks in place, which works on a stage only.
    BlocksInPlace,
    /// One of its runs was long.
    Long,
    /// Enough of its runs in a row were short.
    ProvenShort,
    /// The watchdog saw it hold up a loop.
    Stalled,
}

/// A move of a route between loop and stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MoveStatus {
    /// The place that it moved to.
    pub to: Move,
    /// The reason.
    pub reason: MoveReason,
    /// Seconds since then.
    pub seconds_ago: u64,
}

/// The latest moves, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves(VecDeque<(Instant, Move, MoveReason)>);

impl Moves {
    pub(super) fn add(&mut self, now: Instant, to: Move, reason: MoveReason) {
        if self.0.len() == MOVES_SHOWN {
            self.0.pop_front();
        }
        self.0.push_back((now, to, reason));
    }

    /// Returns them, the latest first.
    pub(super) fn shown(&self, now: Instant) -> Vec<MoveStatus> {
        let moves = self.0.iter().rev();
        let shown = moves.map(|&(then, to, reason)| MoveStatus {
            to,
            reason,
            seconds_ago: now.saturating_duration_since(then).as_secs(),
        });
        shown.collect()
    }
}
