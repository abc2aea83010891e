//! The lag of a loop: measured by the loop itself, reported to its application and in its status.

mod gauge;
mod meter;
mod pressure;
mod probe;
mod record;
mod standing;
mod status;

use std::time::Duration;

use crate::Limits;

pub(crate) use meter::Meter;
pub use pressure::Pressure;
pub(crate) use record::Record;
pub(super) use standing::Standing;
pub use status::LoopStatus;
pub(crate) use status::Roster;

/// A shorter `loop_lag_max` counts as this: a loop with nothing to do would else be behind.
const LAG_MAX_MIN: Duration = Duration::from_millis(1);

fn lag_max(limits: &Limits) -> Duration {
    limits.loop_lag_max.max(LAG_MAX_MIN)
}
