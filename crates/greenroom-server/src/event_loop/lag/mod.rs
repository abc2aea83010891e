//! The lag of a loop: measured by the loop itself, reported to its application and in its status.

mod gauge;
mod meter;
mod pressure;
mod probe;
mod record;
mod standing;
mod status;

pub(crate) use meter::Meter;
pub use pressure::Pressure;
pub(super) use standing::Standing;
pub use status::LoopStatus;
pub(crate) use status::Roster;
