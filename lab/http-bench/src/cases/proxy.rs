//! Five thousand proxied requests per second, by schedule.

use serde::Serialize;

use crate::cases::contestant::{Contestant, present};
use crate::cases::{Context, Row, find, samples};
use crate::goal::Verdict;
use crate::measure::{CpuReading, peak_rss_kb};
use crate::process::{LOAD_CORE, Launch};
use crate::report::Report;
use crate::table::{cell, table};
use crate::tools::OpenLoop;

const RATE: u32 = 5_000;
const WARM_UP_RATE: u32 = 500;
const WARM_UP_SECONDS: u32 = 1;
const P50_MS_MAX: f64 = 173.0;
const P99_MS_MAX: f64 = 195.0;
const RSS_MB_MAX: f64 = 110.0;
const KB_PER_MB: f64 = 1_000.0;
const OURS: &str = "greenroom serve";

/// One run of the open loop.
#[derive(Debug, Serialize)]
struct Sample {
    load: OpenLoop,
    peak_rss_mb: f64,
    cpu_us: f64,
}

pub(crate) fn run(context: &Context) -> anyhow::Result<Report> {
    let contestants = vec![
        Contestant::new("axum-proxy", "/proxy"),
        Contestant::demo("/proxy"),
    ];
    let contestants = present(contestants, context);
    let rows = context.interleave("proxy", &contestants, |contestant| {
        measure(contestant, context)
    })?;
    Ok(Report {
        case: "proxy",
        title: format!("{RATE} requests per second, open loop, upstream: 45056 bytes after 170 ms"),
        notes: vec![
            format!(
                "medians of {} rounds (least–most) of {} s; latency from the scheduled time, new connections included",
                context.rounds, context.seconds
            ),
            format!(
                "server on core 0; load and upstream share core {LOAD_CORE}; late: how late the generator was at p99"
            ),
        ],
        table: render(&rows),
        verdicts: verdicts(find(&rows, OURS)),
        samples: samples(&rows),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let client = context.binaries.path("openloop")?;
    let upstream = Launch::new(context.binaries.path("upstream")?)
        .on_core(LOAD_CORE)
        .start()?;
    let server = contestant
        .launch(context)?
        .arguments(["--upstream", &upstream.url("/")])
        .start()?;
    let url = server.url(contestant.path);
    OpenLoop::run(client, &url, WARM_UP_RATE, WARM_UP_SECONDS)?;
    let before = CpuReading::now(server.pid())?;
    let load = OpenLoop::run(client, &url, RATE, context.seconds)?;
    let used = before.until(CpuReading::now(server.pid())?);
    let cpu_us = used.total.as_secs_f64() * 1e6 / f64::from(load.answered.max(1));
    let peak_rss_mb = peak_rss_kb(server.pid())? as f64 / KB_PER_MB;
    Ok(Sample {
        load,
        peak_rss_mb,
        cpu_us,
    })
}

fn render(rows: &[Row<Sample>]) -> String {
    let header = [
        "server",
        "p50 ms",
        "p99 ms",
        "most ms",
        "unanswered",
        "RSS peak MB",
        "CPU us/request",
        "late ms",
    ];
    let mut out = table(header);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 1);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.load.latency.p50_ms),
            spread(|sample| sample.load.latency.p99_ms),
            spread(|sample| sample.load.latency.max_ms),
            cell(row.spread(Sample::unanswered), 0),
            spread(|sample| sample.peak_rss_mb),
            spread(|sample| sample.cpu_us),
            spread(|sample| sample.load.generator_lateness.p99_ms),
        ]);
    }
    out.to_string()
}

fn verdicts(row: Option<&Row<Sample>>) -> Vec<Verdict> {
    let spread = |value: fn(&Sample) -> f64| row.and_then(|row| row.spread(value));
    let median = |value| spread(value).map(|spread| spread.median);
    let unanswered = spread(Sample::unanswered).map(|spread| spread.max);
    vec![
        Verdict::new(
            "p50",
            median(|sample| sample.load.latency.p50_ms),
            P50_MS_MAX,
            " ms",
        ),
        Verdict::new(
            "p99",
            median(|sample| sample.load.latency.p99_ms),
            P99_MS_MAX,
            " ms",
        ),
        Verdict::new("unanswered in any round", unanswered, 0.0, ""),
        Verdict::new(
            "RSS",
            median(|sample| sample.peak_rss_mb),
            RSS_MB_MAX,
            " MB",
        ),
    ]
}

impl Sample {
    fn unanswered(&self) -> f64 {
        (self.load.offered - self.load.answered).into()
    }
}
