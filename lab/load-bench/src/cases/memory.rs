//! Resident memory of a long closed loop.

use std::time::Duration;

use bench_kit::measure::rss_kb;
use bench_kit::{Report, Verdict, table};
use serde_json::json;

use super::{Context, PATH};

const CONNECTIONS: u32 = 64;
const RATE_MIN: f64 = 50_000.0;
const GROWTH_MIB_MAX: f64 = 1.0;

const SECONDS_PER_MINUTE: u32 = 60;
/// The first samples in which memory may grow, one a second; in a shorter run it is the first half.
const SETTLING_SAMPLES_MAX: usize = 60;
const KIB_PER_MIB: f64 = 1024.0;

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let minutes = context.minutes;
    let seconds = minutes * SECONDS_PER_MINUTE;
    let server = context.start_raw_server()?;
    let bench = context.greenroom()?.keep_alive(CONNECTIONS, seconds);
    eprintln!("memory: {minutes} min");
    let mut rss_mib = Vec::new();
    let report = bench.run_watched(&server.url(PATH), Duration::from_secs(1), |pid| {
        // It may have ended in this moment.
        rss_mib.extend(rss_kb(pid).ok().map(mib));
    })?;
    let rate = per_second(report.good(), report.elapsed_seconds);
    let memory = Memory::of(&rss_mib);
    let mut out = table([
        "minutes",
        "requests/s",
        "settled MiB RSS",
        "most after",
        "last",
    ]);
    out.add_row([
        minutes.to_string(),
        format!("{rate:.0}"),
        format!("{:.2}", memory.settled),
        format!("{:.2}", memory.most_after),
        format!("{:.2}", memory.last),
    ]);
    Ok(Report {
        case: "memory",
        title: format!("{CONNECTIONS} keep-alive connections, closed loop, {minutes} min"),
        notes: vec![format!(
            "RSS each second, page by page; settled: after {} of {} s",
            memory.settling,
            rss_mib.len()
        )],
        table: out.to_string(),
        verdicts: vec![
            Verdict::at_least("requests/s", Some(rate), RATE_MIN, ""),
            Verdict::at_most(
                "RSS grown since it settled",
                Some(memory.most_after - memory.settled),
                GROWTH_MIB_MAX,
                " MiB",
            ),
        ],
        samples: json!({ "requests_per_second": rate, "rss_mib": rss_mib }),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn per_second(requests: u64, seconds: f64) -> f64 {
    requests as f64 / seconds
}

#[expect(clippy::cast_precision_loss, reason = "a process of far below 2^52 kB")]
fn mib(kb: u64) -> f64 {
    kb as f64 / KIB_PER_MIB
}

/// Memory in MiB.
struct Memory {
    /// The number of samples after which it is taken to have settled.
    settling: usize,
    settled: f64,
    most_after: f64,
    last: f64,
}

impl Memory {
    fn of(rss_mib: &[f64]) -> Self {
        let settling = SETTLING_SAMPLES_MAX.min(rss_mib.len() / 2);
        let after = &rss_mib[settling..];
        Self {
            settling,
            settled: after.first().copied().unwrap_or_default(),
            most_after: after.iter().copied().fold(0.0, f64::max),
            last: after.last().copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_short_run_may_settle() {
        let mut rss_mib = vec![4.0; 60];
        rss_mib.extend([8.0, 8.5, 8.25]);
        let memory = Memory::of(&rss_mib);
        let told = format!(
            "{} {} {} {}",
            memory.settling, memory.settled, memory.most_after, memory.last
        );
        assert_eq!(told, "31 4 8.5 8.25");
    }

    #[test]
    fn a_long_run_has_a_minute_to_settle() {
        let mut rss_mib = vec![4.0; 60];
        rss_mib.resize(600, 8.0);
        let memory = Memory::of(&rss_mib);
        assert_eq!(format!("{} {}", memory.settling, memory.settled), "60 8");
    }
}
