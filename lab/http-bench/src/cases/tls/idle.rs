//! Resident memory of idle connections over TLS.

use bench_kit::measure::{family, rss_kb};
use bench_kit::rounds::{find, samples};
use bench_kit::{Report, Verdict, cell, table};

use super::site::{GREENROOM, HYPER, Running, Site};
use crate::cases::Context;
use crate::cases::contestant::Contestant;
use crate::idle_client::Idle;

const CONNECTIONS: u32 = 10_000;
/// Opened and closed before the first reading, so that code and pools are resident in it.
const WARM_UP_CONNECTIONS: u32 = 64;
const KB_EACH_MAX: f64 = 5.0;

pub(crate) fn idle(context: &Context) -> anyhow::Result<Report> {
    let site = Site::new()?;
    let (mut servers, mut notes) = site.servers(context)?;
    let control = servers.iter().find(|server| server.name == HYPER);
    let control = control.map(Contestant::again);
    servers.extend(control);
    let rows = context.interleave("tls-idle", &servers, |server| measure(server, context))?;
    let mut out = table(["server", "kB RSS/connection"]);
    for row in &rows {
        out.add_row([row.name.clone(), cell(row.spread(|kb| *kb), 2)]);
    }
    let ours = find(&rows, GREENROOM).and_then(|row| row.spread(|kb| *kb));
    notes.push(format!(
        "medians of {} rounds (least–most) of (RSS with them - RSS before) / {CONNECTIONS}, of all \
         processes of the server; the kernel's part is in no RSS",
        context.rounds
    ));
    Ok(Report {
        case: "tls-idle",
        title: format!(
            "{CONNECTIONS} idle keep-alive connections over TLS, each answered once after a full \
             handshake"
        ),
        notes,
        table: out.to_string(),
        verdicts: vec![Verdict::at_most(
            format!("{GREENROOM} RSS each"),
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
    let server = Running::start(contestant, context)?;
    drop(Idle::hold(client, &server.https(), WARM_UP_CONNECTIONS)?);
    let before = family_rss_kb(server.pid())?;
    let held = Idle::hold(client, &server.https(), CONNECTIONS)?;
    let with = family_rss_kb(server.pid())?;
    drop(held);
    Ok(with.saturating_sub(before) as f64 / f64::from(CONNECTIONS))
}

fn family_rss_kb(first: u32) -> anyhow::Result<u64> {
    family(first)
        .into_iter()
        .map(|member| rss_kb(member.pid))
        .sum()
}
