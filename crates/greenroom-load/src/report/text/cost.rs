//! The cost of the load on both sides, and the verdict.

use std::time::Duration;

use super::section::Section;
use crate::report::quantity::{number, percent};
use crate::run::Measurement;
use crate::verdict::{ServerUsage, ThreadUsage, Verdict};

/// Bytes of a MiB.
const MEBIBYTE: f64 = 1024.0 * 1024.0;

pub(super) fn section(measurement: &Measurement) -> Option<Section> {
    let streams = measurement.streams.iter();
    let ended: u64 = streams.map(|stream| stream.tally.tried()).sum();
    if ended == 0 || measurement.generator.is_empty() {
        return None;
    }
    let heading = format!("{:<12}{:>10}{:>10}{:>10}", "", "user", "system", "both");
    let server = measurement.server.as_ref();
    let lines = [heading, generator(&measurement.generator, ended)]
        .into_iter()
        .chain(server.map(|usage| server_line(usage, ended)))
        .collect();
    Section::new("CPU time (us/request)", lines)
}

pub(super) fn verdict(measurement: &Measurement) -> Option<Section> {
    Section::new("Verdict", Verdict::of(measurement).sentences)
}

fn generator(threads: &[ThreadUsage], ended: u64) -> String {
    let user = threads.iter().map(|thread| thread.user).sum();
    let system = threads.iter().map(|thread| thread.system).sum();
    let busiest = threads.iter().map(ThreadUsage::busy).fold(0.0, f64::max);
    format!(
        "{}  {}, the busiest at {}",
        times("Generator", user, system, ended),
        counted(threads.len(), "thread", "threads"),
        percent(busiest),
    )
}

fn server_line(usage: &ServerUsage, ended: u64) -> String {
    if usage.processes == 0 {
        return format!("{:<12}  ended during the run", "Server");
    }
    format!(
        "{}  {}, {}, RSS {:.1} MiB",
        times("Server", usage.user, usage.system, ended),
        counted(usage.processes, "process", "processes"),
        counted(usage.threads_max, "thread", "threads"),
        number(usage.rss_bytes_max) / MEBIBYTE,
    )
}

fn times(label: &str, user: Duration, system: Duration, ended: u64) -> String {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / number(ended);
    format!(
        "{label:<12}{:>10.3}{:>10.3}{:>10.3}",
        each(user),
        each(system),
        each(user + system)
    )
}

fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}
