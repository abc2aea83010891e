//! The kernel's counters of a process.

mod children;
mod cpu;
mod family;
mod memory;

pub use children::ChildrenCpu;
pub use cpu::{CpuReading, CpuTime};
pub use family::{FamilyReading, FamilyTime, Member, family};
pub use memory::{peak_rss_kb, pss_kb, rss_kb};
