//! The tutorial's run: 200 requests that wait two seconds, by `greenroom bench` and by ab itself.

use bench_kit::rounds::{Row, find, samples};
use bench_kit::tools::{Ab, GreenroomReport};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::Context;
use super::contestant::{Contestant, present};

const REQUESTS: u64 = 200;
const CONCURRENCY: u32 = 200;
const LATENCY_MS_MAX: f64 = 2_020.0;
const OURS: &str = "greenroom-axum";

/// One burst and one run of ab.
#[derive(Debug, Serialize)]
struct Sample {
    burst: GreenroomReport,
    ab_longest_ms: u32,
}

pub(crate) fn run(context: &Context) -> anyhow::Result<Report> {
    let contestants = ["axum-hello", OURS]
        .map(|name| Contestant::new(name, "/?field=hello"))
        .to_vec();
    let contestants = present(contestants, context);
    let rows = context.interleave("echo200", &contestants, |contestant| {
        measure(contestant, context)
    })?;
    Ok(Report {
        case: "echo200",
        title: format!("{REQUESTS} requests at once, each answered after 2 s"),
        notes: vec![
            format!(
                "medians of {} rounds (least–most), ms; the tutorial's Twiggy: longest 2038 by ab",
                context.rounds
            ),
            format!(
                "ab: `ab -n {REQUESTS} -c {CONCURRENCY}`, of which only the longest request is \
                    comparable"
            ),
        ],
        table: render(&rows),
        verdicts: verdicts(find(&rows, OURS)),
        samples: samples(&rows),
    })
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.launch(context)?.start()?;
    let url = server.url(contestant.path);
    let burst = context.bench()?.connections(REQUESTS, CONCURRENCY);
    let burst = burst.run(&url)?;
    let ab = Ab::new(REQUESTS, CONCURRENCY).run(&url)?;
    Ok(Sample {
        burst,
        ab_longest_ms: ab.longest_ms,
    })
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn answered(&self) -> f64 {
        self.burst.good() as f64
    }
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "answered",
        "p50 ms",
        "longest ms",
        "longest by ab, ms",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 0);
        out.add_row([
            row.name.clone(),
            spread(Sample::answered),
            spread(|sample| sample.burst.latency().p50_ms),
            spread(|sample| sample.burst.latency().max_ms),
            spread(|sample| sample.ab_longest_ms.into()),
        ]);
    }
    out.to_string()
}

fn verdicts(row: Option<&Row<Sample>>) -> Vec<Verdict> {
    let spread = |value: fn(&Sample) -> f64| row.and_then(|row| row.spread(value));
    let unanswered = spread(|sample| f64::from(CONCURRENCY) - sample.answered());
    let longest = spread(|sample| sample.burst.latency().max_ms);
    let by_ab = spread(|sample| sample.ab_longest_ms.into());
    vec![
        Verdict::at_most(
            format!("{OURS} unanswered in any round"),
            unanswered.map(|spread| spread.max),
            0.0,
            "",
        ),
        Verdict::at_most(
            format!("{OURS} longest"),
            longest.map(|spread| spread.median),
            LATENCY_MS_MAX,
            " ms",
        ),
        Verdict::at_most(
            format!("{OURS} longest by ab"),
            by_ab.map(|spread| spread.median),
            LATENCY_MS_MAX,
            " ms",
        ),
    ]
}
