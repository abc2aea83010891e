//! The time to recover after a flood.

use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::{Stream, Stretch};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::overload::roughly_per_second;
use super::{Context, FIB};
use crate::contestant::{Contestant, LAYER, OURS, for_both};

const ROUNDS_MAX: usize = 2;
const FLOOD_FACTOR: f64 = 10.0;
/// Of the capacity, offered before and behind the flood.
const UNLOADED_FACTOR: f64 = 0.2;

const BEFORE_SECONDS: f64 = 3.0;
const FLOOD_SECONDS: f64 = 3.0;
const BEHIND_SECONDS: f64 = 4.0;
/// Of the time before, not counted: connections are made in it.
const SETTLING_SECONDS: f64 = 1.0;
const INTERVAL: &str = "250ms";
/// The most that a stretch's begin may differ from its intended time.
const STRAY_SECONDS: f64 = 0.1;
/// So many in a row must be well.
const STRETCHES: usize = 2;

const UNLOADED_MAX: f64 = 1.5;
/// The variation of single requests on an idle machine.
const NOISE_MS: f64 = 1.0;
const BACK_SECONDS_MAX: f64 = 1.0;

/// Seconds behind the flood.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    hello: Recovery,
    fib: Recovery,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Recovery {
    /// The worst p99 of a stretch before the flood.
    unloaded_ms: f64,
    /// The whole time that was looked at, if it did not come back.
    back_after_seconds: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let contestants = for_both(context);
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("after", rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    let notes = vec![
        format!(
            "medians of {rounds} rounds (least–most); {FLOOD_SECONDS} s of fib(50000) at \
                {FLOOD_FACTOR} x capacity, before and behind it at {UNLOADED_FACTOR} x; /hello at \
                100/s all the while"
        ),
        context.note(),
        format!(
            "back after: until the p99 of {STRETCHES} stretches of {INTERVAL} in a row, of what \
                got its response or timed out in them, is at most {UNLOADED_MAX} x the worst such \
                stretch before the flood + {NOISE_MS} ms; {BEHIND_SECONDS} s: not in the time that \
                was looked at"
        ),
        "judged by the worst round".to_owned(),
    ];
    Ok(Report {
        case: "after",
        title: "behind a flood of 10 x capacity".to_owned(),
        notes,
        table: render(&rows),
        verdicts: verdicts(&rows),
        samples: samples(&rows),
    })
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    context.warm_up(&server)?;
    let capacity = roughly_per_second(context, &server)?;
    let (calm, flood) = (capacity * UNLOADED_FACTOR, capacity * FLOOD_FACTOR);
    let stages = format!(
        "{calm:.1}@{BEFORE_SECONDS}s,{flood:.1}@{FLOOD_SECONDS}s,{calm:.1}@{BEHIND_SECONDS}s"
    );
    let bench = context.bench_beside_hello(&server)?;
    let bench = bench.flags(["--stage", &stages, "--interval", INTERVAL]);
    let report = bench.run_against_all_odds(&server.url(FIB))?;
    let (fib, hello) = (&report.streams()[0], &report.streams()[1]);
    Ok(Sample {
        hello: Recovery::of(hello),
        fib: Recovery::of(fib),
    })
}

impl Recovery {
    fn of(stream: &Stream) -> Self {
        let begins_in = |from: f64, to: f64| {
            let stretches = stream.timeline.iter();
            stretches.filter(move |stretch| {
                stretch.begin_seconds > from - STRAY_SECONDS
                    && stretch.begin_seconds < to - STRAY_SECONDS
            })
        };
        let end = BEFORE_SECONDS + FLOOD_SECONDS;
        let before = begins_in(SETTLING_SECONDS, BEFORE_SECONDS);
        let unloaded_ms = before.map(Stretch::p99_ms).fold(0.0, f64::max);
        let behind: Vec<_> = begins_in(end, end + BEHIND_SECONDS).copied().collect();
        let allowed_ms = unloaded_ms * UNLOADED_MAX + NOISE_MS;
        let well = |stretches: &&[Stretch]| {
            stretches
                .iter()
                .all(|stretch| stretch.p99_ms() <= allowed_ms)
        };
        let first = behind.windows(STRETCHES).find(well);
        Self {
            unloaded_ms,
            back_after_seconds: first.map_or(BEHIND_SECONDS, |stretches| {
                rounded(stretches[0].begin_seconds - end).max(0.0)
            }),
        }
    }
}

/// To a tenth: a stretch begins some microseconds behind the time that it is meant for.
fn rounded(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "/hello before ms",
        "back after s",
        "fib before ms",
        "back after s",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.hello.unloaded_ms, 2),
            spread(|sample| sample.hello.back_after_seconds, 1),
            spread(|sample| sample.fib.unloaded_ms, 1),
            spread(|sample| sample.fib.back_after_seconds, 1),
        ]);
    }
    out.to_string()
}

fn verdicts(rows: &[Row<Sample>]) -> Vec<Verdict> {
    let verdict = |name: &str, what: &str, value: fn(&Sample) -> f64| {
        let worst = find(rows, name).and_then(|row| row.spread(value));
        let what = format!("{name}: {what} back after");
        Verdict::at_most(what, worst.map(|spread| spread.max), BACK_SECONDS_MAX, " s")
    };
    [OURS, LAYER]
        .into_iter()
        .flat_map(|name| {
            [
                verdict(name, "/hello", |sample| sample.hello.back_after_seconds),
                verdict(name, "fib", |sample| sample.fib.back_after_seconds),
            ]
        })
        .collect()
}
