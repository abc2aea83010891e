//! Fifteen thousand requests that all wait at once in one process.

use serde::Serialize;

use crate::cases::contestant::{Contestant, present};
use crate::cases::{Context, Row, find, samples};
use crate::goal::Verdict;
use crate::measure::{peak_rss_kb, rss_kb};
use crate::report::Report;
use crate::table::{cell, table};
use crate::tools::Burst;

const CONNECTIONS: u32 = 15_000;
const WARM_UP_CONNECTIONS: u32 = 16;
const LATENCY_MS_MAX: f64 = 2_500.0;
const KB_EACH_MAX: f64 = 4.0;
const OURS: [&str; 2] = ["greenroom-plain", "greenroom-axum"];

/// One burst.
#[derive(Debug, Serialize)]
struct Sample {
    burst: Burst,
    kb_each: f64,
}

pub(crate) fn run(context: &Context) -> anyhow::Result<Report> {
    let names = ["hyper-hello", "axum-hello", "actix-hello"]
        .into_iter()
        .chain(OURS);
    let contestants = names
        .map(|name| Contestant::new(name, "/?field=hello").arguments(["--app", "echo"]))
        .collect();
    let contestants = present(contestants, context);
    let rows = context.interleave("echo15k", &contestants, |contestant| {
        measure(contestant, context)
    })?;
    let verdicts = OURS
        .iter()
        .flat_map(|name| verdicts(name, find(&rows, name)));
    Ok(Report {
        case: "echo15k",
        title: format!("{CONNECTIONS} requests at once, each answered after 2 s"),
        notes: vec![
            format!(
                "medians of {} rounds (least–most); each request timed from the moment before its connect",
                context.rounds
            ),
            format!("RSS: (peak of the process - before) / {CONNECTIONS}"),
        ],
        table: render(&rows),
        verdicts: verdicts.collect(),
        samples: samples(&rows),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let client = context.binaries.path("burst")?;
    let server = contestant.launch(context)?.start()?;
    let url = server.url(contestant.path);
    Burst::run(client, &url, WARM_UP_CONNECTIONS)?;
    let before = rss_kb(server.pid())?;
    let burst = Burst::run(client, &url, CONNECTIONS)?;
    let peak = peak_rss_kb(server.pid())?;
    let kb_each = peak.saturating_sub(before) as f64 / f64::from(CONNECTIONS);
    Ok(Sample { burst, kb_each })
}

fn render(rows: &[Row<Sample>]) -> String {
    let header = [
        "server",
        "answered",
        "waiting at once",
        "p50 ms",
        "p99 ms",
        "last ms",
        "kB RSS each",
    ];
    let mut out = table(header);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 0);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.burst.answered.into()),
            spread(|sample| sample.burst.peak_waiting.into()),
            spread(|sample| sample.burst.latency.p50_ms),
            spread(|sample| sample.burst.latency.p99_ms),
            spread(|sample| sample.burst.latency.max_ms),
            cell(row.spread(|sample| sample.kb_each), 2),
        ]);
    }
    out.to_string()
}

fn verdicts(name: &str, row: Option<&Row<Sample>>) -> [Verdict; 3] {
    let spread = |value: fn(&Sample) -> f64| row.and_then(|row| row.spread(value));
    let unanswered = spread(|sample| (CONNECTIONS - sample.burst.answered).into());
    let last = spread(|sample| sample.burst.latency.max_ms);
    let kb_each = spread(|sample| sample.kb_each);
    [
        Verdict::new(
            format!("{name} unanswered in any round"),
            unanswered.map(|spread| spread.max),
            0.0,
            "",
        ),
        Verdict::new(
            format!("{name} last answer"),
            last.map(|spread| spread.median),
            LATENCY_MS_MAX,
            " ms",
        ),
        Verdict::new(
            format!("{name} RSS each"),
            kb_each.map(|spread| spread.median),
            KB_EACH_MAX,
            " kB",
        ),
    ]
}
