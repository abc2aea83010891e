//! The cost of automatic placement for a short route.

mod instructions;

use bench_kit::measure::CpuReading;
use bench_kit::process::SERVER_CORE;
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::{GreenroomBench, is_installed};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;
use serde_json::json;

use super::{Context, HELLO};
use crate::contestant::Contestant;

const ROUNDS_MAX: usize = 5;
const CONNECTIONS: u32 = 64;
const WARM_UP_REQUESTS: u64 = 5_000;
const ADDED_US_MAX: f64 = 0.3;

const BARE: &str = "greenroom, bare router";
const AUTO: &str = "greenroom, Placement::auto";
const AXUM_BARE: &str = "axum::serve, bare router";
const AXUM_AUTO: &str = "axum::serve, Placement::auto";
/// Without the layer, and with it.
const PAIRS: [(&str, &str); 2] = [(BARE, AUTO), (AXUM_BARE, AXUM_AUTO)];

/// CPU time of the server in microseconds per request.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    total_us: f64,
    user_us: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let contestants = contestants();
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("cost", rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    let mut notes = vec![
        format!(
            "medians of {rounds} rounds (least–most) of {} s; {CONNECTIONS} keep-alive \
                connections, closed loop, the server on one core and greenroom bench on the other; \
                added: within a round",
            context.seconds
        ),
        "CPU time of the server's whole process as the kernel counts it, stages and watchdog \
            included; its user part is by ticks, which is rough: what (A/A) adds is the \
            noise"
            .to_owned(),
    ];
    let counted = if is_installed("valgrind") {
        notes.push("instructions in user mode per request, as valgrind counts them".to_owned());
        instructions::count(&contestants, context)?
    } else {
        notes.push("no valgrind here: instructions were not counted".to_owned());
        Vec::new()
    };
    let added = difference(&rows, AUTO, |sample| sample.user_us);
    Ok(Report {
        case: "cost",
        title: "a short route with automatic placement and without".to_owned(),
        notes,
        table: render(&rows, &counted),
        verdicts: vec![Verdict::at_most(
            format!("{AUTO}: user CPU added per request"),
            added.map(|spread| spread.median),
            ADDED_US_MAX,
            " us",
        )],
        samples: json!({ "rounds": samples(&rows), "instructions": counted }),
    })
}

fn contestants() -> [Contestant; 5] {
    let application = "inline";
    let greenroom = |name| Contestant::greenroom(name, application).on_core(SERVER_CORE);
    let axum = |name, application| {
        let axum = Contestant::axum(name, application).on_core(SERVER_CORE);
        axum.arguments(["--workers", "1"])
    };
    let bare = greenroom(BARE).arguments(["--unplaced"]);
    [
        bare.clone(),
        greenroom(AUTO),
        bare.again(),
        axum(AXUM_BARE, application),
        axum(AXUM_AUTO, "auto"),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    let url = server.url(HELLO);
    let bench = GreenroomBench::new(&context.binaries)?;
    let warm_up = bench.clone().flags(["-k"]);
    warm_up
        .connections(WARM_UP_REQUESTS, CONNECTIONS)
        .run_well(&url)?;
    let before = CpuReading::now(server.pid())?;
    let report = bench
        .keep_alive(CONNECTIONS, context.seconds)
        .run_well(&url)?;
    let used = before.until(CpuReading::now(server.pid())?);
    let total_us = used.total.as_secs_f64() * 1e6 / report.good() as f64;
    Ok(Sample {
        total_us,
        user_us: total_us * used.user_share,
    })
}

/// Of a contestant less the one without the layer.
fn difference(
    rows: &[Row<Sample>],
    name: &str,
    value: impl Fn(&Sample) -> f64,
) -> Option<bench_kit::Spread> {
    let bare = if name.starts_with("axum") {
        AXUM_BARE
    } else {
        BARE
    };
    find(rows, name)?.difference(find(rows, bare)?, value)
}

fn render(rows: &[Row<Sample>], counted: &[(String, f64)]) -> String {
    let mut out = table([
        "server",
        "CPU us/request",
        "added",
        "user",
        "added",
        "instructions",
        "added",
    ]);
    let instructions = |name: &str| {
        let found = counted.iter().find(|(counted, _)| counted == name);
        found.map(|(_, count)| *count)
    };
    for row in rows {
        let added = |value: fn(&Sample) -> f64| {
            let is_bare = PAIRS.iter().any(|(bare, _)| *bare == row.name);
            cell(difference(rows, &row.name, value).filter(|_| !is_bare), 2)
        };
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 2);
        let more = PAIRS.iter().find(|(_, auto)| *auto == row.name);
        let more = more.and_then(|(bare, auto)| Some(instructions(auto)? - instructions(bare)?));
        let whole =
            |count: Option<f64>| count.map_or("-".to_owned(), |count| format!("{count:.0}"));
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.total_us),
            added(|sample| sample.total_us),
            spread(|sample| sample.user_us),
            added(|sample| sample.user_us),
            whole(instructions(&row.name)),
            whole(more),
        ]);
    }
    out.to_string()
}
