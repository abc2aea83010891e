//! The generator's own part of a median latency.

use bench_kit::process::{LOAD_CORE, Server, pinned};
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools;
use bench_kit::{Report, Verdict, cell, table};
use serde::{Deserialize, Serialize};

use super::generator::Generator;
use super::{Context, PATH};

const RATE: u32 = 1_000;
const ABOVE_US_MAX: f64 = 100.0;
const ABOVE_US_MAX_SPINNING: f64 = 50.0;

const REFERENCE: &str = "busy-polling client";
const SLEEPING: &str = "greenroom bench";
const SPINNING: &str = "greenroom bench --spin";
const MICROS_PER_MILLI: f64 = 1_000.0;

#[derive(Clone, Copy, Debug)]
enum Client {
    Reference,
    Sleeping,
    Spinning,
}

/// One run, in microseconds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "a number without its unit is none"
)]
struct Sample {
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let reference = Generator::new(REFERENCE, Client::Reference);
    let generators = [
        reference.clone(),
        Generator::new(SLEEPING, Client::Sleeping),
        Generator::new(SPINNING, Client::Spinning),
        reference.again(),
    ];
    let rows = interleave("floor", context.rounds, &generators, |generator| {
        measure(generator.kind, context)
    })?;
    Ok(Report {
        case: "floor",
        title: format!("{RATE} requests per second to a server that does not stall"),
        notes: vec![
            format!(
                "medians of {} rounds (least–most) of {} s; above: p50 less that of the \
                {REFERENCE} in the same round",
                context.rounds, context.seconds
            ),
            format!(
                "{REFERENCE}: one connection, never asleep, clock read right before the write and \
                right after the read; greenroom bench counts from the intended time"
            ),
        ],
        table: render(&rows),
        verdicts: vec![
            verdict(&rows, SLEEPING, ABOVE_US_MAX),
            verdict(&rows, SPINNING, ABOVE_US_MAX_SPINNING),
        ],
        samples: samples(&rows),
    })
}

fn measure(client: Client, context: &Context) -> anyhow::Result<Sample> {
    let server = context.start_raw_server()?;
    match client {
        Client::Reference => reference(&server, context),
        Client::Sleeping => greenroom(&server, &[], context),
        Client::Spinning => greenroom(&server, &["--spin"], context),
    }
}

fn reference(server: &Server, context: &Context) -> anyhow::Result<Sample> {
    let mut command = pinned(LOAD_CORE, context.binaries.path("busy-client")?);
    command.args(["--server", &server.address().to_string(), "--path", PATH]);
    command.args(["--rate", &RATE.to_string()]);
    command.args(["--seconds", &context.seconds.to_string()]);
    Ok(serde_json::from_str(&tools::run(&mut command)?.stdout)?)
}

fn greenroom(server: &Server, flags: &[&str], context: &Context) -> anyhow::Result<Sample> {
    let bench = context.greenroom()?.open_loop(RATE, context.seconds);
    let report = bench
        .flags(flags.iter().copied())
        .run_well(&server.url(PATH))?;
    let latency = report.latency();
    Ok(Sample {
        p50_us: latency.p50_ms * MICROS_PER_MILLI,
        p99_us: latency.p99_ms * MICROS_PER_MILLI,
        max_us: latency.max_ms * MICROS_PER_MILLI,
    })
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table(["client", "p50 us", "above us", "p99 us", "most us"]);
    let reference = find(rows, REFERENCE);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 0);
        let above =
            reference.and_then(|reference| row.difference(reference, |sample| sample.p50_us));
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.p50_us),
            cell(above, 0),
            spread(|sample| sample.p99_us),
            spread(|sample| sample.max_us),
        ]);
    }
    out.to_string()
}

fn verdict(rows: &[Row<Sample>], name: &str, at_most: f64) -> Verdict {
    let above = find(rows, name)
        .zip(find(rows, REFERENCE))
        .and_then(|(row, reference)| row.difference(reference, |sample| sample.p50_us));
    Verdict::at_most(
        format!("{name} p50 above the {REFERENCE}"),
        above.map(|spread| spread.median),
        at_most,
        " us",
    )
}
