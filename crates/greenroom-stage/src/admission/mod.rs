//! Admission to a stage as arithmetic: nothing here knows a clock, a thread or a lock.
//!
//! New work is rejected if it would wait longer than the stage allows ([`predicted_wait`],
//! [`admit`]). Work that was admitted by a prediction that proved wrong is dropped when its turn
//! comes too late ([`Lateness`]). A burst that drains by itself is no overload ([`Standing`]).
//! Response time is never the signal: a slow upstream is not our overload.

mod decision;
mod lateness;
mod service_time;
mod standing;
mod wait;

pub use decision::{PROMISED_PERCENT, RETRY_AFTER_MAX, admit, retry_after};
pub use lateness::{LATE_GRACE, Lateness, STANDING_AFTER};
pub use service_time::{REMEMBERED_RUNS, ServiceTime};
pub use standing::{BURST_FACTOR, Standing};
pub use wait::{Load, predicted_wait};
