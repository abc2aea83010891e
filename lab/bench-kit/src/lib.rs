//! The common parts of the benchmark drivers.
//!
//! A driver builds programs ([`Binaries`]), starts servers on one core ([`process`]) and load on
//! another ([`tools`]), reads the kernel's clocks ([`measure`]), repeats that in interleaved rounds
//! ([`rounds`]), and writes tables and verdicts ([`Report`], [`Verdict`]).

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
pub use options::{Keep, RunOptions, named_or_all};
pub use report::{Report, Run};
pub use stats::Spread;
pub use table::{cell, table};
