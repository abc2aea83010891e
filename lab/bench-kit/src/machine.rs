//! The machine of a measurement.

use std::fs;

use anyhow::Context;

/// The load average above which another program runs.
const BUSY: f64 = 0.5;

pub(crate) fn describe() -> anyhow::Result<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name\t: "))
        .unwrap_or("unknown CPU");
    let cores = std::thread::available_parallelism().context("number of cores")?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("osrelease")?;
    let load = load_average()?;
    let mut text = format!(
        "{model}, {cores} cores, Linux {}, load average {load} at the start",
        kernel.trim()
    );
    if load > BUSY {
        text.push_str(
            "\nThe machine was not idle: look at the column \"waited\" before you \
            believe a number.",
        );
    }
    Ok(text)
}

fn load_average() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg").context("/proc/loadavg")?;
    let first = text.split(' ').next().unwrap_or_default();
    first
        .parse()
        .with_context(|| format!("/proc/loadavg: {text:?}"))
}
