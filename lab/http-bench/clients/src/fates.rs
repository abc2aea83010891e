//! What became of clients and their requests while their server was told to end.

use serde::{Deserialize, Serialize};

/// How a client came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// By the end of its connection between two requests: nothing was lost.
    EndedIdle,
    /// Its request was sent in whole, and the connection ended in order (FIN) before the response did.
    LostByEnd,
    /// Its request was sent in whole, and the connection was reset before the response ended.
    LostByReset,
    /// The connection broke while the request was being sent.
    Unsent,
    /// The server went on to answer until the load ended.
    StillServed,
    /// By a response with `Connection: close`.
    Told,
    /// Its request was sent in whole, and neither a response nor an end came before the load ended.
    Unanswered,
}

/// Counts of one run, and how long the server took to end.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Fates {
    /// Responses with 200 before the server was told to end.
    pub answered_before: u64,
    /// Responses with 200 from then on.
    pub answered_after: u64,
    /// Responses with another status, at any time.
    pub refused: u64,
    /// Clients by their end: see [`Fate`].
    pub ended_idle: u64,
    /// See [`Fate::LostByEnd`].
    pub lost_by_end: u64,
    /// See [`Fate::LostByReset`].
    pub lost_by_reset: u64,
    /// See [`Fate::Unsent`].
    pub unsent: u64,
    /// See [`Fate::StillServed`].
    pub still_served: u64,
    /// See [`Fate::Told`].
    pub told: u64,
    /// See [`Fate::Unanswered`].
    pub unanswered: u64,
    /// From when the server was told to end until its process did; none if it did not while there was load.
    pub ended_ms: Option<f64>,
}

impl Fates {
    /// Counts the end of one client.
    pub fn count(&mut self, fate: Fate) {
        *match fate {
            Fate::EndedIdle => &mut self.ended_idle,
            Fate::LostByEnd => &mut self.lost_by_end,
            Fate::LostByReset => &mut self.lost_by_reset,
            Fate::Unsent => &mut self.unsent,
            Fate::StillServed => &mut self.still_served,
            Fate::Told => &mut self.told,
            Fate::Unanswered => &mut self.unanswered,
        } += 1;
    }

    /// Requests that were sent in whole and not answered.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_by_end + self.lost_by_reset + self.unanswered
    }
}
