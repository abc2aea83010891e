//! Resident memory of a process.

use std::fs;

use anyhow::Context;

/// Returns the resident memory in KiB, counted page by page.
///
/// # Errors
/// If the process is gone.
pub fn rss_kb(pid: u32) -> anyhow::Result<u64> {
    field(&format!("/proc/{pid}/smaps_rollup"), "Rss:")
}

/// Returns the resident memory in KiB; of a shared page only this process's share.
///
/// # Errors
/// If the process is gone.
pub fn pss_kb(pid: u32) -> anyhow::Result<u64> {
    field(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

/// Returns the most that was ever resident, in KiB.
///
/// # Errors
/// If the process is gone.
pub fn peak_rss_kb(pid: u32) -> anyhow::Result<u64> {
    field(&format!("/proc/{pid}/status"), "VmHWM:")
}

fn field(path: &str, name: &str) -> anyhow::Result<u64> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let kb = value.and_then(|value| value.trim().strip_suffix(" kB"));
    kb.with_context(|| format!("{path}: no {name}"))?
        .trim()
        .parse()
        .context("kB")
}
