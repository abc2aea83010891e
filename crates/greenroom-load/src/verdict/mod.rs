//! Who was the limit: what the generator and the server used.

mod judge;
mod process;
mod usage;

pub use judge::{Limit, Verdict};
pub use process::{Processes, ServerUsage};
pub use usage::ThreadUsage;
