use greenroom_quantiles::Quantiles;
use serde::Serialize;

use super::moves::MoveStatus;

/// A route at one moment. Times are in microseconds; counts are since its first request.
#[derive(Clone, Debug, Serialize)]
pub struct RouteStatus {
    /// The method; `other` for those that HTTP does not name.
    pub method: String,
    /// The route's pattern, as the router matched it; for requests that no router has matched, the
    /// placement's key, or nothing.
    pub path: String,
    /// The place of its runs.
    pub placed: Placed,
    /// `true` if it stays on its stage for good, because it can run nowhere else: it blocks in
    /// place.
    pub is_pinned: bool,
    /// Poll times of its runs, each the sum of a run's polls, less what parts of its request's body
    /// are given; off by a quarter at most.
    pub poll_time: Quantiles,
    /// Short runs in a row that it has had on its stage.
    pub streak: u32,
    /// Short runs in a row that its next move inline takes.
    pub streak_needed: u32,
    /// Moves between loop and stage.
    pub moves: u64,
    /// The latest of them, the last one first, at most [`MOVES_SHOWN`](super::MOVES_SHOWN).
    pub latest_moves: Vec<MoveStatus>,
    /// Requests that were shed.
    pub sheds: u64,
    /// Times that the watchdog saw it hold up a loop.
    pub stalls: u64,
}

/// The place of a route, and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placed {
    /// On the loop, by `Placement::inline`.
    Inline,
    /// On a stage, by `Placement::on`.
    Staged,
    /// On the loop, because it was proven short.
    AutoInline,
    /// On a stage, because it was not proven short yet, or was long.
    AutoStaged,
}
