//! Fifteen thousand requests that all wait at once in one process.

use bench_kit::measure::{peak_rss_kb, rss_kb};
use bench_kit::rounds::{Row, find, samples};
use bench_kit::tools::{GreenroomBench, GreenroomReport};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::Context;
use super::contestant::{Contestant, present};

const CONNECTIONS: u32 = 15_000;
const WARM_UP_CONNECTIONS: u32 = 16;
const LATENCY_MS_MAX: f64 = 2_500.0;
const KB_EACH_MAX: f64 = 4.0;
const MILLIS_PER_SECOND: f64 = 1_000.0;
const OURS: [&str; 2] = ["greenroom-plain", "greenroom-axum"];

/// One burst.
#[derive(Debug, Serialize)]
struct Sample {
    burst: GreenroomReport,
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
                "medians of {} rounds (least–most); each request timed from the moment before its \
                    connect",
                context.rounds
            ),
            "all waited at once: rounds whose whole run took less than twice the shortest response"
                .to_owned(),
            format!("RSS: (peak of the process - before) / {CONNECTIONS}"),
        ],
        table: render(&rows),
        verdicts: verdicts.collect(),
        samples: samples(&rows),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.launch(context)?.start()?;
    let url = server.url(contestant.path);
    burst(context, WARM_UP_CONNECTIONS)?.run_well(&url)?;
    let before = rss_kb(server.pid())?;
    let burst = burst(context, CONNECTIONS)?.run(&url)?;
    let peak = peak_rss_kb(server.pid())?;
    let kb_each = peak.saturating_sub(before) as f64 / f64::from(CONNECTIONS);
    Ok(Sample { burst, kb_each })
}

/// As many requests as connections.
fn burst(context: &Context, connections: u32) -> anyhow::Result<GreenroomBench> {
    let bench = context.bench()?;
    Ok(bench.connections(connections.into(), connections))
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn answered(&self) -> f64 {
        self.burst.good() as f64
    }

    /// Returns true if there was a moment at which every request waited: then the middle of the run
    /// is in each one's wait.
    fn all_waited_at_once(&self) -> bool {
        let took_ms = self.burst.elapsed_seconds * MILLIS_PER_SECOND;
        self.burst.good() == u64::from(CONNECTIONS) && took_ms < 2.0 * self.burst.latency().min_ms
    }
}

fn all_at_once(row: &Row<Sample>) -> String {
    let all = row
        .samples
        .iter()
        .filter(|sample| sample.all_waited_at_once());
    format!("{} of {}", all.count(), row.samples.len())
}

fn render(rows: &[Row<Sample>]) -> String {
    let header = [
        "server",
        "answered",
        "all waited at once",
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
            spread(Sample::answered),
            all_at_once(row),
            spread(|sample| sample.burst.latency().p50_ms),
            spread(|sample| sample.burst.latency().p99_ms),
            spread(|sample| sample.burst.latency().max_ms),
            cell(row.spread(|sample| sample.kb_each), 2),
        ]);
    }
    out.to_string()
}

fn verdicts(name: &str, row: Option<&Row<Sample>>) -> [Verdict; 3] {
    let spread = |value: fn(&Sample) -> f64| row.and_then(|row| row.spread(value));
    let unanswered = spread(|sample| f64::from(CONNECTIONS) - sample.answered());
    let last = spread(|sample| sample.burst.latency().max_ms);
    let kb_each = spread(|sample| sample.kb_each);
    [
        Verdict::at_most(
            format!("{name} unanswered in any round"),
            unanswered.map(|spread| spread.max),
            0.0,
            "",
        ),
        Verdict::at_most(
            format!("{name} last answer"),
            last.map(|spread| spread.median),
            LATENCY_MS_MAX,
            " ms",
        ),
        Verdict::at_most(
            format!("{name} RSS each"),
            kb_each.map(|spread| spread.median),
            KB_EACH_MAX,
            " kB",
        ),
    ]
}
