//! The time that a hand-off to a stage adds to a request, on an idle server.

use bench_kit::process::{LOAD_CORE, SERVER_CORE};
use bench_kit::rounds::{self, Row, find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::{Context, MICROS_PER_MILLI};
use crate::contestant::Contestant;

const ROUNDS_MAX: usize = 5;
const REQUESTS: u64 = 20_000;
const QUICK_REQUESTS: u64 = 5_000;
const WARM_UP_REQUESTS: u64 = 500;
const ADDED_US_MAX: f64 = 12.0;

const ON_ONE_CORE: &str = "greenroom, all on one core";
const APART: &str = "greenroom, load on the other core";

/// A server, and the core of its load.
struct Pair {
    server: Contestant,
    load_core: Option<usize>,
}

impl rounds::Contestant for Pair {
    fn name(&self) -> &str {
        self.server.name()
    }
}

/// In microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "a number without its unit is none"
)]
struct Sample {
    inline_p50_us: f64,
    staged_p50_us: f64,
    inline_p99_us: f64,
    staged_p99_us: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("handoff", rounds, &pairs(), |pair| measure(pair, context))?;
    Ok(Report {
        case: "handoff",
        title: "a handler on a stage beside the same on the loop, one connection, idle server"
            .to_owned(),
        notes: vec![
            format!(
                "medians of {rounds} rounds (least–most) of {} requests each, one after the other; \
                    added: of the p50 within a round",
                requests(context)
            ),
            "where load and server have a core each, both sleep and wake up for each request: on a \
                virtual machine that takes longer than all the rest, and strays by more than a \
                hand-off takes".to_owned(),
        ],
        table: render(&rows),
        verdicts: [ON_ONE_CORE, APART].map(|name| verdict(&rows, name)).into(),
        samples: samples(&rows),
    })
}

fn pairs() -> [Pair; 4] {
    let application = "hand-off";
    let greenroom = |name| Contestant::greenroom(name, application).arguments(["--unplaced"]);
    let axum = Contestant::axum("axum::serve, all on one core", application);
    let on = |server, load_core| Pair { server, load_core };
    [
        on(
            greenroom(ON_ONE_CORE).on_core(SERVER_CORE),
            Some(SERVER_CORE),
        ),
        on(greenroom(APART).on_core(SERVER_CORE), Some(LOAD_CORE)),
        on(greenroom("greenroom, wherever the system puts them"), None),
        on(
            axum.arguments(["--workers", "1"]).on_core(SERVER_CORE),
            Some(SERVER_CORE),
        ),
    ]
}

fn verdict(rows: &[Row<Sample>], name: &str) -> Verdict {
    let added = find(rows, name).and_then(|row| row.spread(Sample::added_us));
    Verdict::at_most(
        format!("{name}: added by the hand-off at p50"),
        added.map(|spread| spread.median),
        ADDED_US_MAX,
        " us",
    )
}

fn requests(context: &Context) -> u64 {
    if context.quick {
        QUICK_REQUESTS
    } else {
        REQUESTS
    }
}

fn measure(pair: &Pair, context: &Context) -> anyhow::Result<Sample> {
    let server = pair.server.start(context)?;
    let bench = context.bench()?.flags(["-k"]);
    let bench = match pair.load_core {
        Some(core) => bench.on_core(core),
        None => bench,
    };
    let latency = |path, requests| -> anyhow::Result<_> {
        let bench = bench.clone().connections(requests, 1);
        Ok(bench.run_well(&server.url(path))?.latency())
    };
    let (inline, staged) = ("/inline", "/staged");
    latency(inline, WARM_UP_REQUESTS)?;
    latency(staged, WARM_UP_REQUESTS)?;
    let inline = latency(inline, requests(context))?;
    let staged = latency(staged, requests(context))?;
    Ok(Sample {
        inline_p50_us: inline.p50_ms * MICROS_PER_MILLI,
        staged_p50_us: staged.p50_ms * MICROS_PER_MILLI,
        inline_p99_us: inline.p99_ms * MICROS_PER_MILLI,
        staged_p99_us: staged.p99_ms * MICROS_PER_MILLI,
    })
}

impl Sample {
    fn added_us(&self) -> f64 {
        self.staged_p50_us - self.inline_p50_us
    }
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "inline p50 us",
        "staged p50 us",
        "added us",
        "inline p99 us",
        "staged p99 us",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 1);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.inline_p50_us),
            spread(|sample| sample.staged_p50_us),
            spread(Sample::added_us),
            spread(|sample| sample.inline_p99_us),
            spread(|sample| sample.staged_p99_us),
        ]);
    }
    out.to_string()
}
