use serde::Serialize;

use crate::stage::Quantiles;

/// A route at one moment. Times are in microseconds; counts are since its first request.
#[derive(Clone, Debug, Serialize)]
pub struct RouteStatus {
    /// The method; `other` for those that HTTP does not name.
    pub method: String,
    /// The route's pattern, as the router matched it; for what no router has matched, the placement's key, or
    /// nothing.
    pub path: String,
    /// Where it runs.
    pub placed: Placed,
    /// Whether it stays on its stage for good, because it can run nowhere else: it blocks in place.
    pub is_pinned: bool,
    /// How long its runs were busy; off by a quarter at most.
    pub busy: Quantiles,
    /// How many short runs in a row it has had on its stage.
    pub streak: u32,
    /// How many its next move inline takes.
    pub streak_needed: u32,
    /// How often it has moved.
    pub moves: u64,
    /// How many of its requests were shed.
    pub sheds: u64,
    /// How often the watchdog saw it hold up a loop.
    pub stalls: u64,
}

/// Where a route runs, and who decided it.
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
