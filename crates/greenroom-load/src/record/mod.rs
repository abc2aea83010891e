//! Measurements: histograms and counters of fixed size, for a run of any length.

mod by_rate;
mod classify;
mod failure;
mod recorder;
mod tally;
mod timeline;
mod times;

pub use by_rate::{AtRate, ByRate};
pub use failure::{FailureKind, Failures};
pub use recorder::{FirstResponse, RequestRecord};
pub use tally::{Counts, ResponseRecord, Tally};
pub use timeline::{Point, Timeline};
pub use times::Times;

#[cfg(test)]
pub(crate) use by_rate::Ended;
pub(crate) use recorder::{Batch, Recorder, RecorderSettings};
