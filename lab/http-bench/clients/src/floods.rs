//! The outcomes of a flood's handshakes.

use serde::{Deserialize, Serialize};

/// Counts of one run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Flood {
    /// Time in which connections were opened, in seconds.
    pub seconds: f64,
    /// Connections that were due by the schedule of an open loop; 0 in a closed loop.
    pub due: u64,
    /// Connections that were opened.
    pub opened: u64,
    /// Of these, those on which the server sent its part of the handshake.
    pub answered: u64,
    /// Those that the server ended instead.
    pub refused: u64,
    /// Those on which nothing came in time.
    pub unanswered: u64,
}

impl Flood {
    /// Returns the handshakes that the server finished in a second.
    #[must_use]
    pub fn answered_per_second(&self) -> f64 {
        self.per_second(self.answered)
    }

    /// Returns the connections that were opened in a second.
    #[must_use]
    pub fn opened_per_second(&self) -> f64 {
        self.per_second(self.opened)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 {
            count as f64 / self.seconds
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_time_in_which_connections_were_opened() {
        let flood = Flood {
            seconds: 2.0,
            opened: 10,
            answered: 4,
            ..Flood::default()
        };
        assert!((flood.opened_per_second() - 5.0).abs() < f64::EPSILON);
        assert!((flood.answered_per_second() - 2.0).abs() < f64::EPSILON);
        assert!(Flood::default().answered_per_second().abs() < f64::EPSILON);
    }
}
