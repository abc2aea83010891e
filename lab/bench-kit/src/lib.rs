//! The common parts of the benchmark drivers: programs that are built ([`Binaries`]), tables and
//! verdicts ([`Report`], [`Verdict`]).

mod binaries;
mod goal;
mod machine;
mod options;
pub mod process;
mod report;
mod table;
pub mod tools;

pub use binaries::{Binaries, lab_directory};
pub use goal::Verdict;
pub use options::{Keep, named_or_all};
pub use report::{Report, Run};
pub use table::table;
