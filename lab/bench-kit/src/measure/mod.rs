//! What the kernel knows about a process.

mod children;
mod cpu;
mod memory;

pub use children::ChildrenCpu;
pub use cpu::{CpuReading, CpuTime};
pub use memory::{peak_rss_kb, rss_kb};
