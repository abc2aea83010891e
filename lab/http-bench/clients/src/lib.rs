//! The common part of the benchmark's own clients: targets of load, parsing of responses, outcomes
//! of requests.

mod outcomes;
pub mod response;
mod target;

pub use outcomes::{Outcome, Outcomes};
pub use target::Target;
