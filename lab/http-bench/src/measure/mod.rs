//! What the kernel knows about a process.

mod cpu;
mod memory;

pub(crate) use cpu::{CpuReading, CpuTime};
pub(crate) use memory::{peak_rss_kb, rss_kb};
