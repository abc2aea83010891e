//! The timeline while the third party, that pictures are shared with, hangs.

use anyhow::Context as _;
use bench_kit::rounds::{self, AGAIN, Row, find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::Context;
use crate::site::ThirdParty;

/// Reads of the timeline a second.
const TIMELINE_RATE: &str = "200";
/// Shares a second.
const SHARE_RATE: u32 = 100;
/// The third party's time-out is 3 s: a run must be longer.
const SECONDS_FACTOR: u32 = 3;
const RATIO_MAX: f64 = 1.2;
const PICTURES: usize = 60;
const UNLOADED: &str = "no shares";
const HANGING: &str = "100 shares/s, third party hangs";

struct Contestant {
    name: String,
    shares: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    own_delay_ms: f64,
    failed: f64,
    shares_answered: f64,
    share_p50_ms: f64,
    share_longest_ms: f64,
}

impl rounds::Contestant for Contestant {
    fn name(&self) -> &str {
        &self.name
    }
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let contestant = |name: String, shares| Contestant { name, shares };
    let contestants = [
        contestant(UNLOADED.to_owned(), false),
        contestant(HANGING.to_owned(), true),
        contestant(format!("{UNLOADED}{AGAIN}"), false),
    ];
    let rows = interleave("share", context.rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    Ok(Report {
        case: "share",
        title: "the timeline while a third party hangs".to_owned(),
        notes: vec![
            format!(
                "medians of {} rounds (least–most) of {} s, interleaved, each with a server of \
                 its own; GET /api/timeline {TIMELINE_RATE} times a second as a user who is \
                 logged in; server and load on both cores",
                context.rounds,
                seconds(context)
            ),
            "latencies are those of responses with 200; failed: other responses, and none"
                .to_owned(),
            "the third party gives tokens, takes connections, and never responds; a try may take \
             3 s. When enough tries have failed the circuit breaker opens, and shares are rejected \
             at once"
                .to_owned(),
        ],
        table: render(&rows),
        verdicts: verdicts(&rows).into(),
        samples: samples(&rows),
    })
}

fn seconds(context: &Context) -> u32 {
    context.seconds * SECONDS_FACTOR
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let third_party = context.runtime.block_on(ThirdParty::start())?;
    let site = context.start_alone(&third_party.toml())?;
    let pictures = context.add_pictures(&site.client, "owner", PICTURES)?;
    let picture = pictures.ids.first().context("a picture")?;
    let user = &pictures.owner;
    let seconds = seconds(context).to_string();
    let mut load = context
        .load()?
        .flags(["-k", "-l", "--rate", TIMELINE_RATE, "-t", &seconds])
        .flags(["-C", &user.cookie, "-H"])
        .flags([format!("x-csrf-token: {}", user.csrf)])
        .flags([site.social.url("/api/timeline")]);
    if contestant.shares {
        let url = site.social.url(&format!("/api/pictures/{picture}/share"));
        load = load.flags([
            "--also".to_owned(),
            format!("rate={SHARE_RATE} method=POST {url}"),
        ]);
    }
    let report = load.run()?;
    let latency = report.streams()[0].good_latency();
    let shares = report.streams().get(1);
    Ok(Sample {
        p50_ms: latency.p50_ms,
        p99_ms: latency.p99_ms,
        longest_ms: latency.max_ms,
        own_delay_ms: report.lag().p99_ms,
        failed: report.requests().due.saturating_sub(report.good()) as f64,
        shares_answered: shares.map_or(0.0, |shares| shares.requests().answered as f64),
        share_p50_ms: shares.map_or(0.0, |shares| shares.latency().p50_ms),
        share_longest_ms: shares.map_or(0.0, |shares| shares.latency().max_ms),
    })
}

fn verdicts(rows: &[Row<Sample>]) -> [Verdict; 2] {
    let ratio = || find(rows, HANGING)?.ratio(find(rows, UNLOADED)?, |sample| sample.p99_ms);
    let failed = || find(rows, HANGING)?.spread(|sample| sample.failed);
    [
        Verdict::at_most(
            "p99 of the timeline / that without shares",
            ratio().map(|ratio| ratio.median),
            RATIO_MAX,
            " x",
        ),
        Verdict::at_most(
            "reads of the timeline that failed in any round",
            failed().map(|failed| failed.max),
            0.0,
            "",
        ),
    ]
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "meanwhile",
        "p50 ms",
        "p99 ms",
        "x p99",
        "longest ms",
        "own delay ms",
        "failed",
        "shares answered",
        "share p50 ms",
        "share longest ms",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        let ratio = find(rows, UNLOADED).and_then(|first| row.ratio(first, |sample| sample.p99_ms));
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.p50_ms, 2),
            spread(|sample| sample.p99_ms, 2),
            cell(ratio, 2),
            spread(|sample| sample.longest_ms, 2),
            spread(|sample| sample.own_delay_ms, 2),
            spread(|sample| sample.failed, 0),
            spread(|sample| sample.shares_answered, 0),
            spread(|sample| sample.share_p50_ms, 1),
            spread(|sample| sample.share_longest_ms, 0),
        ]);
    }
    out.to_string()
}
