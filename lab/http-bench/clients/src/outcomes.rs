//! The outcomes of clients and their requests while their server ends.

use serde::{Deserialize, Serialize};

/// The end of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By the end of its connection between two requests: nothing was lost.
    EndedIdle,
    /// Its request was sent in whole, and the connection ended in order (FIN) before the response
    /// did.
    LostByEnd,
    /// Its request was sent in whole, and the connection was reset before the response ended.
    LostByReset,
    /// The connection broke while the request was being sent.
    Unsent,
    /// The server responded until the load ended.
    StillServed,
    /// By a response with `Connection: close`.
    Announced,
    /// Its request was sent in whole, and neither a response nor an end came before the load ended.
    NoResponse,
}

/// Counts of one run, and how long the server took to end.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Outcomes {
    /// Responses with 200 before the signal.
    pub answered_before: u64,
    /// Responses with 200 from then on.
    pub answered_after: u64,
    /// Responses with another status, at any time.
    pub refused: u64,
    /// Clients by their end: see [`Outcome`].
    pub ended_idle: u64,
    /// See [`Outcome::LostByEnd`].
    pub lost_by_end: u64,
    /// See [`Outcome::LostByReset`].
    pub lost_by_reset: u64,
    /// See [`Outcome::Unsent`].
    pub unsent: u64,
    /// See [`Outcome::StillServed`].
    pub still_served: u64,
    /// See [`Outcome::Announced`].
    pub announced: u64,
    /// See [`Outcome::NoResponse`].
    pub unanswered: u64,
    /// Seconds from the signal to the end of the server's process; none if it did not end while
    /// there was load.
    pub ended_ms: Option<f64>,
}

impl Outcomes {
    /// Counts the end of one client.
    pub fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::EndedIdle => &mut self.ended_idle,
            Outcome::LostByEnd => &mut self.lost_by_end,
            Outcome::LostByReset => &mut self.lost_by_reset,
            Outcome::Unsent => &mut self.unsent,
            Outcome::StillServed => &mut self.still_served,
            Outcome::Announced => &mut self.announced,
            Outcome::NoResponse => &mut self.unanswered,
        } += 1;
    }

    /// Requests that were sent in whole and got no response.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_by_end + self.lost_by_reset + self.unanswered
    }
}
