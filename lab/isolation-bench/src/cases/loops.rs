//! One short route alone, more often than its loop can serve.

use bench_kit::process::SERVER_CORE;
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::{GreenroomBench, Stream};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::{Context, HELLO, PERCENT, TIMEOUT_SECONDS};
use crate::contestant::{Contestant, LAYER, OURS};
use crate::rivals::Rivals;

const ROUNDS_MAX: usize = 2;
/// An overload: its route, and the other load on the server's core.
pub(super) struct Overload {
    case: &'static str,
    title: &'static str,
    path: &'static str,
    rivals: usize,
    core: &'static str,
}

/// The smallest response. Programs take their share of the core, so that one generator can ask for
/// more than is left.
pub(super) const SMALLEST: Overload = Overload {
    case: "loops",
    title: "/hello alone at 2 x what its loop can answer",
    path: HELLO,
    rivals: 3,
    core: "a core that it shares with 3 busy programs of its priority, for one generator could not \
        ask for twice what a loop can serve",
};

/// A response for which the handler computes for some 60 us.
pub(super) const COMPUTED: Overload = Overload {
    case: "loops-busy",
    title: "/fib/4500, inline, alone at 2 x what its loop can answer",
    path: "/fib/4500",
    rivals: 0,
    core: "a core of its own",
};

const CONNECTIONS: u32 = 64;
/// Of an open loop; as many as its clients may keep waiting.
const OPEN_CONNECTIONS: &str = "4000";
/// Of what the closed loop reaches.
const LADDER: [f64; 3] = [0.8, 1.0, 1.2];
const OVERLOAD_FACTOR: f64 = 2.0;
const SETTLING_SECONDS: u32 = 1;

const GOODPUT_MIN: f64 = 0.9;
const P99_MS_MAX: f64 = 100.0;

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// The most responses per second at any load.
    peak: f64,
    /// The same at twice as many requests, as a share of it.
    goodput: f64,
    answered_p99_ms: f64,
    refused_percent: f64,
    failed_percent: f64,
    /// Of what was due.
    sent_percent: f64,
}

pub(super) fn run(overload: &Overload, context: &Context) -> anyhow::Result<Report> {
    let axum =
        |name, application| Contestant::axum(name, application).arguments(["--workers", "1"]);
    let mut contestants = vec![
        Contestant::ours().arguments(["--loops", "1"]),
        axum(LAYER, "auto"),
    ];
    if !context.ours_only {
        contestants.push(axum("axum, inline", "inline"));
    }
    let contestants = contestants
        .into_iter()
        .map(|server| server.on_core(SERVER_CORE));
    let contestants: Vec<_> = contestants.collect();
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave(overload.case, rounds, &contestants, |contestant| {
        measure(overload, contestant, context)
    })?;
    Ok(Report {
        case: overload.case,
        title: overload.title.to_owned(),
        notes: vec![
            format!(
                "medians of {rounds} rounds (least–most) of {} s; one loop on {}, greenroom bench \
                    on the other",
                context.seconds, overload.core
            ),
            format!(
                "peak: the most responses with 200 per second in a closed loop over {CONNECTIONS} \
                    connections and in open loops at {LADDER:?} of that; then {OVERLOAD_FACTOR} x \
                    the peak, over at most {OPEN_CONNECTIONS} connections"
            ),
            "sent: of what was due; what was not sent found no free connection, or the generator \
                too slow"
                .to_owned(),
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

fn measure(
    overload: &Overload,
    contestant: &Contestant,
    context: &Context,
) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    let _rivals = Rivals::start(overload.rivals, Some(SERVER_CORE))?;
    let url = server.url(overload.path);
    let bench = GreenroomBench::new(&context.binaries)?.flags(["-s", TIMEOUT_SECONDS]);
    let seconds = context.seconds + SETTLING_SECONDS;
    let closed = bench.clone().keep_alive(CONNECTIONS, seconds);
    let closed = closed.run_well(&url)?;
    let closed = good_per_second(&closed.streams()[0], seconds);
    let mut peak = closed;
    for step in LADDER {
        let stream = open(&bench, &url, closed * step, seconds)?;
        peak = peak.max(good_per_second(&stream, seconds));
    }
    let stream = open(&bench, &url, peak * OVERLOAD_FACTOR, seconds)?;
    Ok(Sample::of(&stream, peak, seconds))
}

fn open(bench: &GreenroomBench, url: &str, rate: f64, seconds: u32) -> anyhow::Result<Stream> {
    let (rate, seconds) = (format!("{rate:.0}"), seconds.to_string());
    let flags = [
        "-k",
        "-c",
        OPEN_CONNECTIONS,
        "--rate",
        &rate,
        "-t",
        &seconds,
    ];
    let report = bench.clone().flags(flags).run_against_all_odds(url)?;
    Ok(report.streams()[0].clone())
}

fn good_per_second(stream: &Stream, seconds: u32) -> f64 {
    stream.good_per_second(SETTLING_SECONDS, seconds)
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn of(stream: &Stream, peak: f64, seconds: u32) -> Self {
        let requests = stream.requests();
        let percent = |part: u64| part as f64 / requests.due.max(1) as f64 * PERCENT;
        Self {
            peak,
            goodput: good_per_second(stream, seconds) / peak,
            answered_p99_ms: stream.good_latency().p99_ms,
            refused_percent: percent(stream.with_status(503)),
            failed_percent: percent(requests.sent.saturating_sub(requests.answered)),
            sent_percent: percent(requests.sent),
        }
    }
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "peak answers/s",
        "goodput at 2 x",
        "answered p99 ms",
        "refused %",
        "failed %",
        "sent %",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.peak, 0),
            spread(|sample| sample.goodput, 2),
            spread(|sample| sample.answered_p99_ms, 1),
            spread(|sample| sample.refused_percent, 1),
            spread(|sample| sample.failed_percent, 1),
            spread(|sample| sample.sent_percent, 1),
        ]);
    }
    out.to_string()
}

fn verdicts(row: &Row<Sample>) -> Vec<Verdict> {
    let median = |value: fn(&Sample) -> f64| row.spread(value).map(|spread| spread.median);
    vec![
        Verdict::at_least(
            format!("{}: goodput at 2 x / peak", row.name),
            median(|sample| sample.goodput),
            GOODPUT_MIN,
            "",
        ),
        Verdict::at_most(
            format!("{}: answered p99 at 2 x", row.name),
            median(|sample| sample.answered_p99_ms),
            P99_MS_MAX,
            " ms",
        ),
    ]
}
