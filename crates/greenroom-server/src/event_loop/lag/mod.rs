//! How far a loop is behind: measured by the loop itself, told to its application and to whoever
//! looks.

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
