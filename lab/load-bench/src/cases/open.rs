//! An open loop: the cost of its clock, and its actual rate.

use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::generator::Generator;
use super::{Context, PATH};

const RATE: u32 = 10_000;
const TOTAL_US_MAX: f64 = 35.0;
const RATE_PERCENT_MIN: f64 = 99.9;

const NAME: &str = "greenroom bench";
const MICROS_PER_MILLI: f64 = 1_000.0;
const PERCENT: f64 = 100.0;

/// One run.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    total_us: f64,
    user_us: f64,
    system_us: f64,
    /// The share of the schedule that was sent while it lasted, in per cent.
    rate_percent: f64,
    p50_us: f64,
    p99_us: f64,
    /// The delay with which requests were sent, at p99.
    lag_us: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let greenroom = Generator::new(NAME, &[][..]);
    let spinning = Generator::new("greenroom bench --spin", &["--spin"][..]);
    let generators = [greenroom.clone(), spinning, greenroom.again()];
    let rows = interleave("open", context.rounds, &generators, |generator| {
        measure(generator.kind, context)
    })?;
    Ok(Report {
        case: "open",
        title: format!("open loop at {RATE} requests per second"),
        notes: vec![
            format!(
                "medians of {} rounds (least–most) of {} s; CPU time as in closed; the rate's \
                goal is judged by the worst round",
                context.rounds, context.seconds
            ),
            "rate: the part of the schedule that was sent while it lasted; late: how late \
            requests were sent, at p99"
                .to_owned(),
            "--spin takes a whole core by design, and is here for its latencies".to_owned(),
        ],
        table: render(&rows),
        verdicts: verdicts(find(&rows, NAME)),
        samples: samples(&rows),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(flags: &[&str], context: &Context) -> anyhow::Result<Sample> {
    let server = context.start_raw_server()?;
    let bench = context.greenroom()?.open_loop(RATE, context.seconds);
    let report = bench
        .flags(flags.iter().copied())
        .run_well(&server.url(PATH))?;
    let (requests, latency) = (report.requests(), report.latency());
    let each_us = |time: std::time::Duration| time.as_secs_f64() * 1e6 / requests.sent as f64;
    Ok(Sample {
        total_us: each_us(report.cpu.total()),
        user_us: each_us(report.cpu.user),
        system_us: each_us(report.cpu.system),
        rate_percent: (1.0 - requests.missed_share) * PERCENT,
        p50_us: latency.p50_ms * MICROS_PER_MILLI,
        p99_us: latency.p99_ms * MICROS_PER_MILLI,
        lag_us: report.lag().p99_ms * MICROS_PER_MILLI,
    })
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "generator",
        "CPU us/request",
        "user",
        "system",
        "rate %",
        "p50 us",
        "p99 us",
        "late us",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.total_us, 1),
            spread(|sample| sample.user_us, 1),
            spread(|sample| sample.system_us, 1),
            spread(|sample| sample.rate_percent, 2),
            spread(|sample| sample.p50_us, 0),
            spread(|sample| sample.p99_us, 0),
            spread(|sample| sample.lag_us, 0),
        ]);
    }
    out.to_string()
}

fn verdicts(row: Option<&Row<Sample>>) -> Vec<Verdict> {
    let total = row.and_then(|row| row.spread(|sample| sample.total_us));
    let rate = row.and_then(|row| row.spread(|sample| sample.rate_percent));
    vec![
        Verdict::at_most(
            format!("{NAME} total CPU"),
            total.map(|spread| spread.median),
            TOTAL_US_MAX,
            " us",
        ),
        Verdict::at_least(
            format!("{NAME} rate of the asked"),
            rate.map(|spread| spread.min),
            RATE_PERCENT_MIN,
            " %",
        ),
    ]
}
