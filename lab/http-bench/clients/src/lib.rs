//! What the benchmark's own clients share: where load goes, how answers are read, what became of requests.

pub mod answer;
mod fates;
mod target;

pub use fates::{Fate, Fates};
pub use target::Target;
