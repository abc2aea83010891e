//! What the benchmark drivers share.
//!
//! A driver builds programs ([`Binaries`]), starts servers on one core ([`process`]) and load on another ([`tools`]),
//! reads the kernel's clocks ([`measure`]), repeats that in interleaved rounds ([`rounds`]), and tells what came out as
//! tables and verdicts ([`Report`], [`Verdict`]).

mod binaries;
mod goal;
mod machine;
pub mod measure;
mod options;
pub mod process;
mod report;
pub mod rounds;
mod stats;
mod table;
pub mod tools;

pub use binaries::{Binaries, lab_directory};
pub use goal::Verdict;
pub use options::{RunOptions, named_or_all};
pub use report::{Report, Run};
pub use stats::Spread;
pub use table::{cell, table};
