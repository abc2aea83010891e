//! Four handlers that sleep and keep their thread, in every shape in which axum takes an
//! application.

use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::{Context, HELLO, HELLO_RATE, hello_verdicts, percent};
use crate::contestant::Contestant;

const BLOCK: &str = "/block/2000";
const SLEEPERS: u32 = 4;
const ROUNDS_MAX: usize = 3;
/// The sleepers take the first two.
const HELLO_SECONDS: &str = "4";
const SLEEPERS_TIMEOUT_SECONDS: &str = "12";

/// The flag's value, and what it is.
const SHAPES: [(&str, &str); 4] = [
    ("router", "Router"),
    ("make-service", "into_make_service_with_connect_info"),
    ("normalize-path", "NormalizePath"),
    ("method-router", "MethodRouter"),
];

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    hello_answered_percent: f64,
    hello_p50_ms: f64,
    hello_p99_ms: f64,
    hello_longest_ms: f64,
    sleepers_answered: u64,
    sleepers_longest_ms: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let mut contestants: Vec<_> = SHAPES.into_iter().map(greenroom).collect();
    if !context.ours_only {
        contestants.extend(SHAPES.map(|(flag, shape)| {
            let name = format!("axum::serve, {shape}");
            Contestant::axum(&name, "inline").arguments(["--shape", flag])
        }));
    }
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("shapes", rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    let ours = SHAPES
        .into_iter()
        .filter_map(|shape| find(&rows, &name(shape)));
    Ok(Report {
        case: "shapes",
        title: format!(
            "{SLEEPERS} x {BLOCK} at once beside /hello at {HELLO_RATE}/s, in every shape of an \
                application"
        ),
        notes: vec![
            format!(
                "medians of {rounds} rounds (least–most) of {HELLO_SECONDS} s; the handler sleeps \
                    for 2 s by std::thread::sleep, async and undeclared; 2 loops beside axum's 2 \
                    workers"
            ),
            context.note(),
            "the MethodRouter is one handler for /hello and /block, which looks at the path"
                .to_owned(),
            "judged by the worst round".to_owned(),
        ],
        table: render(&rows),
        verdicts: ours.flat_map(verdicts).collect(),
        samples: samples(&rows),
    })
}

fn name((_, shape): (&str, &str)) -> String {
    format!("greenroom::serve, {shape}")
}

fn greenroom(shape: (&str, &str)) -> Contestant {
    Contestant::server(&name(shape), "inline").arguments(["--shape", shape.0])
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    context.warm_up(&server)?;
    let url = server.url(HELLO);
    let hello = format!("rate={HELLO_RATE} name=hello keep-alive=yes {url}");
    let bench = context.bench()?.connections(SLEEPERS.into(), SLEEPERS);
    let bench = bench.flags(["-s", SLEEPERS_TIMEOUT_SECONDS, "-t", HELLO_SECONDS]);
    let bench = bench.flags(["--also", &hello]);
    let report = bench.run_against_all_odds(&server.url(BLOCK))?;
    let (sleepers, hello) = (&report.streams()[0], &report.streams()[1]);
    let latency = hello.latency();
    Ok(Sample {
        hello_answered_percent: percent(hello.with_status(200), hello.requests().due),
        hello_p50_ms: latency.p50_ms,
        hello_p99_ms: latency.p99_ms,
        hello_longest_ms: latency.max_ms,
        sleepers_answered: sleepers.with_status(200),
        sleepers_longest_ms: sleepers.latency().max_ms,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "/hello answered %",
        "p50 ms",
        "p99 ms",
        "longest ms",
        "of 4 sleepers answered",
        "longest ms",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.hello_answered_percent, 1),
            spread(|sample| sample.hello_p50_ms, 2),
            spread(|sample| sample.hello_p99_ms, 2),
            spread(|sample| sample.hello_longest_ms, 1),
            spread(|sample| sample.sleepers_answered as f64, 0),
            spread(|sample| sample.sleepers_longest_ms, 0),
        ]);
    }
    out.to_string()
}

fn verdicts(row: &Row<Sample>) -> Vec<Verdict> {
    hello_verdicts(
        row,
        |sample| sample.hello_answered_percent,
        |sample| sample.hello_p99_ms,
    )
}
