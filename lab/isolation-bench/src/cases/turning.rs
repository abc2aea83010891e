//! A route that turns long after 10,000 short runs.

use anyhow::ensure;
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::Stretch;
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::{Context, FIB, HELLO, HELLO_RATE};
use crate::contestant::{Contestant, LAYER, OURS, ours};
use crate::status;

const ROUNDS_MAX: usize = 3;
const PATTERN: &str = "/fib/{n}";
const SHORT: &str = "/fib/10";
const SHORT_RUNS: u64 = 10_000;
/// The stall is in the first second.
const SECONDS: u32 = 3;

const MOVES_MAX: f64 = 1.0;
const STALLS_MAX: f64 = 1.0;
/// The longest wait of a request beyond the run that stalls its loop.
const BEYOND_MS_MAX: f64 = 5.0;
const HELLO_P99_MS_MAX: f64 = 5.0;

#[derive(Clone, Debug, Serialize)]
struct Sample {
    /// Moves since the route turned long.
    moves: u64,
    stalls: u64,
    ends_staged: bool,
    fib_p50_ms: f64,
    /// Of /hello, in the first second.
    hello_longest_ms: f64,
    /// The worst p99 of a second of /hello after the first.
    hello_later_ms: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("turning", rounds, &ours(), |contestant| {
        measure(contestant, context)
    })?;
    Ok(Report {
        case: "turning",
        title: format!("a route that turns long after {SHORT_RUNS} short runs"),
        notes: vec![
            format!(
                "medians of {rounds} rounds (least–most); {SHORT_RUNS} x {SHORT}, then {FIB} in a \
                    closed loop over one connection for {SECONDS} s, while /hello runs at 100/s \
                    over another"
            ),
            context.note(),
            "moves: of the route, since it turned long, as /greenroom/status tells; one that ends \
                staged after one move ran long on a loop once. stalls: runs that the watchdog saw \
                hold up a loop for over 10 ms, which a shorter one is not"
                .to_owned(),
            "judged by the worst round".to_owned(),
        ],
        table: render(&rows),
        verdicts: [OURS, LAYER]
            .into_iter()
            .filter_map(|name| find(&rows, name))
            .flat_map(verdicts)
            .collect(),
        samples: samples(&rows),
    })
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    context.warm_up(&server)?;
    let bench = context.bench()?.flags(["-k"]);
    let short = bench.clone().connections(SHORT_RUNS, 1);
    short.run_well(&server.url(SHORT))?;
    let before = status::route(server.address(), PATTERN)?;
    ensure!(
        before.placed == "auto_inline",
        "{SHORT_RUNS} short runs leave the route {}",
        before.placed
    );
    let hello = server.url(HELLO);
    let hello = format!("rate={HELLO_RATE} connections=1 name=hello keep-alive=yes {hello}");
    let long = bench.keep_alive(1, SECONDS).flags(["--also", &hello]);
    let report = long.run_well(&server.url(FIB))?;
    let after = status::route(server.address(), PATTERN)?;
    let timeline = &report.streams()[1].timeline;
    let later = timeline.iter().skip(1).map(Stretch::p99_ms);
    Ok(Sample {
        moves: after.moves - before.moves,
        stalls: after.stalls - before.stalls,
        ends_staged: after.placed == "auto_staged",
        fib_p50_ms: report.latency().p50_ms,
        hello_longest_ms: timeline.first().map_or(f64::NAN, Stretch::max_ms),
        hello_later_ms: later.fold(0.0, f64::max),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "moves",
        "stalls",
        "ends staged",
        "one fib p50 ms",
        "/hello longest in 1st s ms",
        "p99 later ms",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        let staged = row.samples.iter().filter(|sample| sample.ends_staged);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.moves as f64, 0),
            spread(|sample| sample.stalls as f64, 0),
            format!("{} of {}", staged.count(), row.samples.len()),
            spread(|sample| sample.fib_p50_ms, 1),
            spread(|sample| sample.hello_longest_ms, 2),
            spread(|sample| sample.hello_later_ms, 2),
        ]);
    }
    out.to_string()
}

#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn verdicts(row: &Row<Sample>) -> Vec<Verdict> {
    let what = |what: &str| format!("{}: {what}", row.name);
    let most = |value: fn(&Sample) -> f64| row.spread(value).map(|spread| spread.max);
    let beyond = |sample: &Sample| sample.hello_longest_ms - sample.fib_p50_ms;
    let staged = row.spread(|sample| f64::from(u8::from(sample.ends_staged)));
    vec![
        Verdict::at_most(
            what("moves"),
            most(|sample| sample.moves as f64),
            MOVES_MAX,
            "",
        ),
        Verdict::at_least(
            what("ends staged"),
            staged.map(|spread| spread.min),
            1.0,
            "",
        ),
        Verdict::at_most(
            what("stalls"),
            most(|sample| sample.stalls as f64),
            STALLS_MAX,
            "",
        ),
        Verdict::at_most(
            what("/hello's longest beyond one fib"),
            most(beyond),
            BEYOND_MS_MAX,
            " ms",
        ),
        Verdict::at_most(
            what("/hello p99 later"),
            most(|sample| sample.hello_later_ms),
            HELLO_P99_MS_MAX,
            " ms",
        ),
    ]
}
