//! Bodies that take long while they are sent, behind a handler that is short.

use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::{Context, HELLO, HELLO_RATE, TIMEOUT_SECONDS, hello_verdicts, percent};
use crate::contestant::{AXUM_INLINE, Contestant, SERVER};

const APPLICATION: &str = "compressed";
const JSON: &str = "/json";
const JSON_RATE: u32 = 10;
const ROUNDS_MAX: usize = 3;
/// A measurement takes so many times the seconds of others, for there are 10 bodies in one.
const SECONDS_FACTOR: u32 = 2;
/// Without compression, until the handler is known as short.
const SHORT_REQUESTS: u64 = 200;
const CONNECTIONS: u32 = 4;
/// A body alone.
const ALONE_REQUESTS: u64 = 10;
const GZIP: &str = "Accept-Encoding: gzip";

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// A body alone, with compression.
    alone_ms: f64,
    hello_answered_percent: f64,
    hello_p50_ms: f64,
    hello_p99_ms: f64,
    json_answered_percent: f64,
    json_p50_ms: f64,
    json_p99_ms: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let mut contestants = vec![Contestant::server(SERVER, APPLICATION)];
    if !context.ours_only {
        contestants.push(Contestant::axum(AXUM_INLINE, APPLICATION));
    }
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("bodies", rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    Ok(Report {
        case: "bodies",
        title: format!(
            "1.6 MB of JSON through CompressionLayer (gzip) at {JSON_RATE}/s beside /hello at \
                {HELLO_RATE}/s"
        ),
        notes: vec![
            format!(
                "medians of {rounds} rounds (least–most) of {} s; the handler gives a text that is \
                    there already: all work is in the body, which is compressed while it is sent",
                context.seconds * SECONDS_FACTOR
            ),
            format!(
                "the route is asked {SHORT_REQUESTS} times without compression before, so that its \
                    handler is known as short; alone: the median of {ALONE_REQUESTS} with it"
            ),
            context.note(),
            "each request to /hello has a connection of its own, so that all loops serve some"
                .to_owned(),
            "judged by the worst round".to_owned(),
        ],
        table: render(&rows),
        verdicts: find(&rows, SERVER).map(verdicts).unwrap_or_default(),
        samples: samples(&rows),
    })
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    context.warm_up(&server)?;
    let url = server.url(JSON);
    let kept = context.bench()?.flags(["-k"]);
    kept.clone()
        .connections(SHORT_REQUESTS, CONNECTIONS)
        .run_well(&url)?;
    let alone = kept.flags(["-H", GZIP]).connections(ALONE_REQUESTS, 1);
    let alone = alone.run_well(&url)?;
    let seconds = (context.seconds * SECONDS_FACTOR).to_string();
    let hello = server.url(HELLO);
    // Connections of their own: one that is kept might have a loop on which no body is sent.
    let hello = format!("rate={HELLO_RATE} name=hello keep-alive=no {hello}");
    let bench = context.bench()?.flags(["-k", "-s", TIMEOUT_SECONDS]);
    let bench = bench.flags(["--also", &hello]);
    let bench = bench.flags(["--rate", &JSON_RATE.to_string(), "-t", &seconds]);
    let report = bench.flags(["-H", GZIP]).run_against_all_odds(&url)?;
    let (json, hello) = (&report.streams()[0], &report.streams()[1]);
    Ok(Sample {
        alone_ms: alone.latency().p50_ms,
        hello_answered_percent: percent(hello.with_status(200), hello.requests().due),
        hello_p50_ms: hello.latency().p50_ms,
        hello_p99_ms: hello.latency().p99_ms,
        json_answered_percent: percent(json.with_status(200), json.requests().due),
        json_p50_ms: json.latency().p50_ms,
        json_p99_ms: json.latency().p99_ms,
    })
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "a body alone ms",
        "/hello answered %",
        "p50 ms",
        "p99 ms",
        "bodies answered %",
        "p50 ms",
        "p99 ms",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.alone_ms, 1),
            spread(|sample| sample.hello_answered_percent, 1),
            spread(|sample| sample.hello_p50_ms, 2),
            spread(|sample| sample.hello_p99_ms, 2),
            spread(|sample| sample.json_answered_percent, 1),
            spread(|sample| sample.json_p50_ms, 1),
            spread(|sample| sample.json_p99_ms, 1),
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
