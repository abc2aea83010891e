//! The tutorial's run: 200 requests that wait two seconds, by our client and by ab itself.

use serde::Serialize;

use crate::cases::contestant::{Contestant, present};
use crate::cases::{Context, Row, find, samples};
use crate::goal::Verdict;
use crate::report::Report;
use crate::table::{cell, table};
use crate::tools::{Ab, Burst};

const REQUESTS: u32 = 200;
const LATENCY_MS_MAX: f64 = 2_020.0;
const OURS: &str = "greenroom-axum";

/// One burst and one run of ab.
#[derive(Debug, Serialize)]
struct Sample {
    burst: Burst,
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
                "ab: `ab -n {REQUESTS} -c {REQUESTS}`, of which only the longest request is comparable"
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
    let burst = Burst::run(context.binaries.path("burst")?, &url, REQUESTS)?;
    let ab = Ab {
        requests: REQUESTS.into(),
        concurrency: REQUESTS,
    }
    .run(&url)?;
    Ok(Sample {
        burst,
        ab_longest_ms: ab.longest_ms,
    })
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
            spread(|sample| sample.burst.answered.into()),
            spread(|sample| sample.burst.latency.p50_ms),
            spread(|sample| sample.burst.latency.max_ms),
            spread(|sample| sample.ab_longest_ms.into()),
        ]);
    }
    out.to_string()
}

fn verdicts(row: Option<&Row<Sample>>) -> Vec<Verdict> {
    let spread = |value: fn(&Sample) -> f64| row.and_then(|row| row.spread(value));
    let unanswered = spread(|sample| (REQUESTS - sample.burst.answered).into());
    let longest = spread(|sample| sample.burst.latency.max_ms);
    let by_ab = spread(|sample| sample.ab_longest_ms.into());
    vec![
        Verdict::new(
            format!("{OURS} unanswered in any round"),
            unanswered.map(|spread| spread.max),
            0.0,
            "",
        ),
        Verdict::new(
            format!("{OURS} longest"),
            longest.map(|spread| spread.median),
            LATENCY_MS_MAX,
            " ms",
        ),
        Verdict::new(
            format!("{OURS} longest by ab"),
            by_ab.map(|spread| spread.median),
            LATENCY_MS_MAX,
            " ms",
        ),
    ]
}
