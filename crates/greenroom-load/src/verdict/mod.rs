//! The verdict on a run's limit, from the CPU time of generator and server.

mod judge;
mod process;
mod usage;

pub use judge::{Limit, Verdict};
pub use process::{Processes, ServerUsage};
pub use usage::ThreadUsage;
