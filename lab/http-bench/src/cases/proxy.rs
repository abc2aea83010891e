//! Five thousand proxied requests per second, by schedule.

use bench_kit::measure::{CpuReading, peak_rss_kb};
use bench_kit::process::{LOAD_CORE, Launch};
use bench_kit::rounds::{Row, find, samples};
use bench_kit::tools::GreenroomReport;
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::Context;
use super::contestant::{Contestant, present};

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
    load: GreenroomReport,
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
                "medians of {} rounds (least–most) of {} s; latency from the scheduled time, new \
                    connections included",
                context.rounds, context.seconds
            ),
            format!(
                "server on core 0; load and upstream share core {LOAD_CORE}; late: how late the \
                    generator was at p99"
            ),
        ],
        table: render(&rows),
        verdicts: verdicts(find(&rows, OURS)),
        samples: samples(&rows),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let upstream = Launch::new(context.binaries.path("upstream")?)
        .on_core(LOAD_CORE)
        .start()?;
    let server = contestant
        .launch(context)?
        .arguments(["--upstream", &upstream.url("/")])
        .start()?;
    let url = server.url(contestant.path);
    let warm_up = context.bench()?.open_loop(WARM_UP_RATE, WARM_UP_SECONDS);
    warm_up.run_well(&url)?;
    let before = CpuReading::now(server.pid())?;
    let load = context
        .bench()?
        .open_loop(RATE, context.seconds)
        .run(&url)?;
    let used = before.until(CpuReading::now(server.pid())?);
    let cpu_us = used.total.as_secs_f64() * 1e6 / load.good().max(1) as f64;
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
            spread(|sample| sample.load.latency().p50_ms),
            spread(|sample| sample.load.latency().p99_ms),
            spread(|sample| sample.load.latency().max_ms),
            cell(row.spread(Sample::unanswered), 0),
            spread(|sample| sample.peak_rss_mb),
            spread(|sample| sample.cpu_us),
            spread(|sample| sample.load.lag().p99_ms),
        ]);
    }
    out.to_string()
}

fn verdicts(row: Option<&Row<Sample>>) -> Vec<Verdict> {
    let spread = |value: fn(&Sample) -> f64| row.and_then(|row| row.spread(value));
    let median = |value| spread(value).map(|spread| spread.median);
    let unanswered = spread(Sample::unanswered).map(|spread| spread.max);
    vec![
        Verdict::at_most(
            "p50",
            median(|sample| sample.load.latency().p50_ms),
            P50_MS_MAX,
            " ms",
        ),
        Verdict::at_most(
            "p99",
            median(|sample| sample.load.latency().p99_ms),
            P99_MS_MAX,
            " ms",
        ),
        Verdict::at_most("unanswered in any round", unanswered, 0.0, ""),
        Verdict::at_most(
            "RSS",
            median(|sample| sample.peak_rss_mb),
            RSS_MB_MAX,
            " MB",
        ),
    ]
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn unanswered(&self) -> f64 {
        self.load.requests().due.saturating_sub(self.load.good()) as f64
    }
}
