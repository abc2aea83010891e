//! Resident memory of idle keep-alive connections.

use bench_kit::measure::rss_kb;
use bench_kit::rounds::{find, samples};
use bench_kit::{Report, Verdict, cell, table};

use super::Context;
use super::contestant::{Contestant, present};
use crate::idle_client::Idle;

const CONNECTIONS: u32 = 10_000;
/// Opened and closed before the first reading, so that code and pools are resident in it.
const WARM_UP_CONNECTIONS: u32 = 64;
const KB_EACH_MAX: f64 = 1.5;
const OURS: &str = "greenroom-plain";

pub(crate) fn run(context: &Context) -> anyhow::Result<Report> {
    let names = [
        "hyper-hello",
        "axum-hello",
        "actix-hello",
        OURS,
        "greenroom-axum",
    ];
    let contestants = names.map(|name| Contestant::new(name, "/hello")).to_vec();
    let contestants = present(contestants, context);
    let rows = context.interleave("idle", &contestants, |contestant| {
        measure(contestant, context)
    })?;
    let mut out = table(["server", "kB RSS/connection"]);
    for row in &rows {
        out.add_row([row.name.clone(), cell(row.spread(|kb| *kb), 2)]);
    }
    let ours = find(&rows, OURS).and_then(|row| row.spread(|kb| *kb));
    Ok(Report {
        case: "idle",
        title: format!("{CONNECTIONS} idle keep-alive connections, each answered once"),
        notes: vec![format!(
            "medians of {} rounds (least–most) of (RSS with them - RSS before) / {CONNECTIONS}; \
                the kernel's part is in no RSS",
            context.rounds
        )],
        table: out.to_string(),
        verdicts: vec![Verdict::at_most(
            format!("{OURS} RSS each"),
            ours.map(|kb| kb.median),
            KB_EACH_MAX,
            " kB",
        )],
        samples: samples(&rows),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<f64> {
    let client = context.binaries.path("idle")?;
    let server = contestant.launch(context)?.start()?;
    let url = server.url(contestant.path);
    drop(Idle::hold(client, &url, WARM_UP_CONNECTIONS)?);
    let before = rss_kb(server.pid())?;
    let held = Idle::hold(client, &url, CONNECTIONS)?;
    let with = rss_kb(server.pid())?;
    drop(held);
    Ok(with.saturating_sub(before) as f64 / f64::from(CONNECTIONS))
}
