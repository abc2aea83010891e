//! A server that stands still for the last second of every five, and the latencies that tools
//! report.

use anyhow::Context as _;
use bench_kit::process::Launch;
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::{Ab, Wrk};
use bench_kit::{Report, Spread, Verdict, cell, lab_directory, table};
use serde::Serialize;

use super::Context;
use super::generator::Generator;

const RATE: u32 = 1_000;
/// Four periods of the server.
const SECONDS: u32 = 20;
const ROUNDS_MAX: usize = 3;
const CONNECTIONS: u32 = 64;
/// More requests than ab sends in the time.
const AB_REQUESTS_MAX: u64 = 2_000_000;

const GREENROOM: &str = "greenroom bench --rate 1000";
const OFF_PERCENT_MAX: f64 = 2.0;
const PERCENT: f64 = 100.0;
const MICROS_PER_MILLI: f64 = 1_000.0;

/// A fifth of all requests falls into a stall, and waits for the rest of its second.
const TRUTH: Sample = Sample {
    p90_ms: 500.0,
    p99_ms: 950.0,
    p99_9_ms: Some(995.0),
    max_ms: 1_000.0,
};

#[derive(Clone, Copy, Debug)]
enum Tool {
    Ab,
    Greenroom,
    Wrk,
}

/// The report of a tool, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "a number without its unit is none"
)]
struct Sample {
    p90_ms: f64,
    p99_ms: f64,
    /// The 99.9th percentile, which ab does not report.
    p99_9_ms: Option<f64>,
    max_ms: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let generators = [
        Generator::new(GREENROOM, Tool::Greenroom),
        Generator::new("wrk -c 64", Tool::Wrk),
        Generator::new("ab -k -c 64", Tool::Ab),
    ];
    let rounds = if context.quick {
        1
    } else {
        context.rounds.min(ROUNDS_MAX)
    };
    let rows = interleave("stall", rounds, &generators, |generator| {
        measure(generator.kind, context)
    })?;
    Ok(Report {
        case: "stall",
        title: format!("a server that stands still for 1 s in every 5 s, {SECONDS} s"),
        notes: vec![
            format!("medians of {rounds} rounds (least–most); what each tool tells, in ms"),
            "the truth: a user who comes at any moment finds a stall once in five times, and \
            waits for the rest of it"
                .to_owned(),
            "wrk and ab wait for a response before they send the next request: of each stall they \
            see one request per connection, among the many that they send while all is well \
            (coordinated omission)"
                .to_owned(),
            "wrk then adds the requests that it takes to have missed, at the mean pace of the \
            whole run; ab adds nothing"
                .to_owned(),
        ],
        table: render(&rows),
        verdicts: verdicts(find(&rows, GREENROOM)),
        samples: samples(&rows),
    })
}

fn measure(tool: Tool, context: &Context) -> anyhow::Result<Sample> {
    let server = Launch::new(context.binaries.path("stalling-server")?).start()?;
    let url = server.url("/");
    match tool {
        Tool::Ab => ab(&url),
        Tool::Greenroom => greenroom(&url, context),
        Tool::Wrk => wrk(&url),
    }
}

fn greenroom(url: &str, context: &Context) -> anyhow::Result<Sample> {
    let bench = context.greenroom()?.open_loop(RATE, SECONDS);
    let latency = bench.run_well(url)?.latency();
    Ok(Sample {
        p90_ms: latency.p90_ms,
        p99_ms: latency.p99_ms,
        p99_9_ms: Some(latency.p99_9_ms),
        max_ms: latency.max_ms,
    })
}

fn ab(url: &str) -> anyhow::Result<Sample> {
    let ab = Ab {
        keep_alive: true,
        seconds_max: Some(SECONDS),
        ..Ab::new(AB_REQUESTS_MAX, CONNECTIONS)
    };
    let report = ab.run(url)?;
    Ok(Sample {
        p90_ms: report.p90_ms.into(),
        p99_ms: report.p99_ms.into(),
        p99_9_ms: None,
        max_ms: report.longest_ms.into(),
    })
}

fn wrk(url: &str) -> anyhow::Result<Sample> {
    let wrk = Wrk {
        connections: CONNECTIONS,
        seconds: SECONDS,
        script: Some(lab_directory().join("load-bench/scripts/percentiles.lua")),
    };
    percentiles(&wrk.run(url)?.text)
}

/// Parses the line that our script for wrk prints.
fn percentiles(text: &str) -> anyhow::Result<Sample> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("percentiles in us: "));
    let line = line.with_context(|| format!("wrk's script printed no percentiles:\n{text}"))?;
    let micros: Vec<f64> = line
        .split_ascii_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("wrk's percentiles: {line:?}"))?;
    let &[p90, p99, p99_9, max] = &micros[..] else {
        anyhow::bail!("wrk's percentiles: {line:?}");
    };
    Ok(Sample {
        p90_ms: p90 / MICROS_PER_MILLI,
        p99_ms: p99 / MICROS_PER_MILLI,
        p99_9_ms: Some(p99_9 / MICROS_PER_MILLI),
        max_ms: max / MICROS_PER_MILLI,
    })
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table(["who tells", "p90 ms", "p99 ms", "p99.9 ms", "most ms"]);
    let truth = Row {
        name: "the truth".to_owned(),
        samples: vec![TRUTH],
    };
    for row in std::iter::once(&truth).chain(rows) {
        let p99_9 = row.samples.iter().filter_map(|sample| sample.p99_9_ms);
        out.add_row([
            row.name.clone(),
            cell(row.spread(|sample| sample.p90_ms), 1),
            cell(row.spread(|sample| sample.p99_ms), 1),
            cell(Spread::of(p99_9), 1),
            cell(row.spread(|sample| sample.max_ms), 1),
        ]);
    }
    out.to_string()
}

fn verdicts(row: Option<&Row<Sample>>) -> Vec<Verdict> {
    let verdict = |what: &str, value: fn(&Sample) -> Option<f64>| {
        let off = row.and_then(|row| worst_off(row, value));
        let what = format!("{GREENROOM} {what} off the truth in any round");
        Verdict::at_most(what, off, OFF_PERCENT_MAX, " %")
    };
    vec![
        verdict("p90", |sample| Some(sample.p90_ms)),
        verdict("p99", |sample| Some(sample.p99_ms)),
        verdict("p99.9", |sample| sample.p99_9_ms),
        verdict("max", |sample| Some(sample.max_ms)),
    ]
}

/// Returns the distance from the truth of the worst round, in per cent.
fn worst_off(row: &Row<Sample>, value: fn(&Sample) -> Option<f64>) -> Option<f64> {
    let truth = value(&TRUTH)?;
    let off = |sample| Some((value(sample)? / truth - 1.0).abs() * PERCENT);
    Spread::of(row.samples.iter().filter_map(off)).map(|spread| spread.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_script_is_read() {
        let text = "  375 requests in 3.00s\npercentiles in us: 1 2000 3000 4500\n";
        let sample = percentiles(text).expect("a line");
        assert!((sample.max_ms - 4.5).abs() < f64::EPSILON);
        assert!(percentiles("375 requests in 3.00s").is_err());
    }
}
