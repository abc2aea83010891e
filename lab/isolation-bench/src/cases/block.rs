//! Handlers that block, all at once, without being declared so.

use bench_kit::measure::{peak_rss_kb, rss_kb};
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::{Context, HELLO, PERCENT};
use crate::contestant::{Contestant, LAYER, OURS, for_blocking};

const BLOCK: &str = "/block/2000";
const ROUNDS_MAX: usize = 2;

const CROWD: u32 = 500;
const CROWD_HELLO_SECONDS: &str = "4";
const CROWD_TIMEOUT_SECONDS: &str = "6";
const CROWD_SECONDS_MAX: f64 = 2.5;
const HELLO_P99_MS_MAX: f64 = 25.0;
const KB_EACH_MAX: f64 = 32.0;

const TUTORIAL: u32 = 200;
const TUTORIAL_TIMEOUT_SECONDS: &str = "12";
const TUTORIAL_SECONDS_MAX: f64 = 2.1;

const MILLIS_PER_SECOND: f64 = 1_000.0;

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    crowd: Crowd,
    hello_answered_percent: f64,
    hello_p99_ms: f64,
    /// Memory that a blocked request and its connection took.
    kb_each: f64,
    tutorial: Crowd,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Crowd {
    answered: u64,
    longest_seconds: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let (contestants, left_out) = for_blocking(context);
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("block", rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    let mut notes = vec![
        format!(
            "medians of {rounds} rounds (least–most); {CROWD} x {BLOCK} at once with /hello at \
                100/s, then {TUTORIAL} x {BLOCK} at once against a fresh server; the handler \
                sleeps for 2 s and keeps its thread"
        ),
        context.note(),
        format!(
            "answered: with 200 within {CROWD_TIMEOUT_SECONDS} s and {TUTORIAL_TIMEOUT_SECONDS} s, \
                which ends what is longer; kB each: (most RSS - RSS before) / {CROWD}, of one \
                process"
        ),
        "Starman with 50 workers is said to take 10 s for the 200".to_owned(),
        "judged by the worst round".to_owned(),
    ];
    notes.extend(left_out);
    Ok(Report {
        case: "block",
        title: "handlers that block, undeclared".to_owned(),
        notes,
        table: render(&rows),
        verdicts: [OURS, LAYER]
            .into_iter()
            .filter_map(|name| find(&rows, name))
            .flat_map(verdicts)
            .collect(),
        samples: samples(&rows),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    context.warm_up(&server)?;
    let before_kb = rss_kb(server.pid())?;
    let hello = format!("rate=100 name=hello keep-alive=yes {}", server.url(HELLO));
    let bench = context.bench()?.connections(CROWD.into(), CROWD);
    let bench = bench.flags(["-s", CROWD_TIMEOUT_SECONDS, "-t", CROWD_HELLO_SECONDS]);
    let bench = bench.flags(["--also", &hello]);
    let report = bench.run_against_all_odds(&server.url(BLOCK))?;
    let grown_kb = peak_rss_kb(server.pid())?.saturating_sub(before_kb);
    drop(server);
    let (crowd, hello) = (&report.streams()[0], &report.streams()[1]);
    let hello_due = hello.requests().due.max(1);
    Ok(Sample {
        crowd: Crowd {
            answered: crowd.with_status(200),
            longest_seconds: crowd.latency().max_ms / MILLIS_PER_SECOND,
        },
        hello_answered_percent: hello.with_status(200) as f64 / hello_due as f64 * PERCENT,
        hello_p99_ms: hello.latency().p99_ms,
        kb_each: grown_kb as f64 / f64::from(CROWD),
        tutorial: tutorial(contestant, context)?,
    })
}

fn tutorial(contestant: &Contestant, context: &Context) -> anyhow::Result<Crowd> {
    let server = contestant.start(context)?;
    let bench = context.bench()?.connections(TUTORIAL.into(), TUTORIAL);
    let bench = bench.flags(["-s", TUTORIAL_TIMEOUT_SECONDS]);
    let report = bench.run_against_all_odds(&server.url(BLOCK))?;
    Ok(Crowd {
        answered: report.good(),
        longest_seconds: report.latency().max_ms / MILLIS_PER_SECOND,
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "of 500 answered",
        "longest s",
        "/hello answered %",
        "p99 ms",
        "kB each",
        "of 200 answered",
        "longest s",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.crowd.answered as f64, 0),
            spread(|sample| sample.crowd.longest_seconds, 2),
            spread(|sample| sample.hello_answered_percent, 1),
            spread(|sample| sample.hello_p99_ms, 2),
            spread(|sample| sample.kb_each, 1),
            spread(|sample| sample.tutorial.answered as f64, 0),
            spread(|sample| sample.tutorial.longest_seconds, 3),
        ]);
    }
    out.to_string()
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn verdicts(row: &Row<Sample>) -> Vec<Verdict> {
    let what = |what: &str| format!("{}: {what}", row.name);
    let least = |value: fn(&Sample) -> f64| row.spread(value).map(|spread| spread.min);
    let most = |value: fn(&Sample) -> f64| row.spread(value).map(|spread| spread.max);
    vec![
        Verdict::at_least(
            what("answered of 500"),
            least(|sample| sample.crowd.answered as f64),
            f64::from(CROWD),
            "",
        ),
        Verdict::at_most(
            what("longest of 500"),
            most(|sample| sample.crowd.longest_seconds),
            CROWD_SECONDS_MAX,
            " s",
        ),
        Verdict::at_most(
            what("/hello p99 beside 500"),
            most(|sample| sample.hello_p99_ms),
            HELLO_P99_MS_MAX,
            " ms",
        ),
        Verdict::at_most(
            what("memory of each of 500"),
            most(|sample| sample.kb_each),
            KB_EACH_MAX,
            " kB",
        ),
        Verdict::at_least(
            what("answered of 200"),
            least(|sample| sample.tutorial.answered as f64),
            f64::from(TUTORIAL),
            "",
        ),
        Verdict::at_most(
            what("longest of 200"),
            most(|sample| sample.tutorial.longest_seconds),
            TUTORIAL_SECONDS_MAX,
            " s",
        ),
    ]
}
