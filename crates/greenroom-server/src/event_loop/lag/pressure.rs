use std::time::Duration;

use serde::Serialize;

/// The degree to which a loop is behind, in the steps that something is done about.
///
/// With a `loop_lag_max` of 20 ms and a `loop_lag_standing` of 1 s, it is what every probe of the
/// lag has said for 1 s: 34 probes of 30 ms in a row are `Over`, one of 3 ms among them makes it
/// `None` and the second begin anew. So a burst that the loop is through with within a second
/// raises nothing.
///
/// Once it has been `Over`, and until it was not for 1 s, two probes in a row decide, by the
/// smaller of the two: 12 ms and 30 ms are `Raised`, 30 ms and 21 ms `Over`, 3 ms and 40 ms `None`.
/// So lasting overload is shed without a pause, and one probe is enough to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pressure {
    /// Ready work is served soon enough.
    #[default]
    None,
    /// Ready work waits for more than half of [`loop_lag_max`](crate::Limits::loop_lag_max), and
    /// has done so for some time.
    Raised,
    /// Ready work waits for more than [`loop_lag_max`](crate::Limits::loop_lag_max), and has done
    /// so for some time.
    Over,
}

impl Pressure {
    /// Returns the pressure by a single lag.
    pub(super) fn of(lag: Duration, lag_max: Duration) -> Self {
        if lag > lag_max {
            Self::Over
        } else if lag > lag_max / 2 {
            Self::Raised
        } else {
            Self::None
        }
    }

    /// From what [`Balance`](crate::event_loop::Balance) keeps of it.
    pub(in crate::event_loop) fn from_u8(kept: u8) -> Self {
        match kept {
            0 => Self::None,
            1 => Self::Raised,
            _ => Self::Over,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Raised => "raised",
            Self::Over => "over",
        }
    }
}
