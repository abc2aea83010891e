//! The memory of eight workers of an application whose framework is large, loaded before the fork
//! and after it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use bench_kit::measure::{Member, family, pss_kb, rss_kb};
use bench_kit::rounds::{Row, interleave, samples};
use bench_kit::{Report, Spread, cell, table};
use serde::Serialize;

use super::{Context, add_missing};
use crate::contestant::{Contestant, LineUp};
use crate::installed::require_modules;
use crate::peer::Peer;

const ROUNDS_MAX: usize = 3;

const APPLICATION: &str = "mojo.psgi";
const WORKERS: u32 = 8;
const WARM_UP_REQUESTS: u64 = 800;
const WARM_UP_CONNECTIONS: u32 = 32;

/// The pause between two looks; nothing grows any more when they agree.
const PAUSE: Duration = Duration::from_millis(300);
const AGREES_WITHIN_KB: u64 = 64;
const SETTLED_MAX: Duration = Duration::from_secs(20);

const KIB_PER_MIB: f64 = 1024.0;

/// The memory of one run, in MiB.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    first_rss: f64,
    /// The RSS of the process between the first one and the workers, if there is one.
    zygote_rss: Option<f64>,
    /// The mean RSS of the workers.
    worker_rss: f64,
    worker_pss: f64,
    /// The PSS of all processes: the memory that the server takes of the machine.
    all_pss: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    require_modules(&[("Mojolicious", "libmojolicious-perl")])?;
    let contestants = [Peer::Greenroom, Peer::Starman].map(both);
    let line_up = LineUp::of(contestants.into_iter().flatten(), context);
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("memory", rounds, &line_up.present, |contestant| {
        measure(contestant, context)
    })?;
    let mut notes = vec![
        format!(
            "medians of {rounds} rounds (least–most), MiB, after {WARM_UP_REQUESTS} requests; RSS: \
             pages that a process has; PSS: of a page that several have, each one's share, so that \
             the sum is what the server takes"
        ),
        "first: Greenroom's front, Starman's master; the zygote forks the workers and \
         serves nothing"
            .to_owned(),
    ];
    notes.extend(line_up.notes.iter().cloned());
    Ok(Report {
        case: "memory",
        title: format!("{WORKERS} workers of an application with Mojolicious"),
        notes,
        table: render(&rows, &line_up),
        verdicts: Vec::new(),
        samples: samples(&rows),
    })
}

/// Returns the contestant that loads in each worker, and the one that loads before they are forked.
fn both(peer: Peer) -> [Contestant; 2] {
    let plain = Contestant::new(peer, APPLICATION).workers(WORKERS);
    let flag = peer.preload_flag();
    let preloaded = plain.clone().further([flag]);
    [plain, preloaded.named(format!("{}, {flag}", peer.name()))]
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    let bench = contestant.bench(context)?;
    let bench = bench.connections(WARM_UP_REQUESTS, WARM_UP_CONNECTIONS);
    bench.run_well(&server.url("/"))?;
    let members = settled(server.pid())?;
    Sample::of(&members)
}

/// Returns the family's processes, once all workers have loaded everything.
fn settled(first: u32) -> anyhow::Result<Vec<Member>> {
    let deadline = Instant::now() + SETTLED_MAX;
    let mut before = 0;
    loop {
        let members = family(first);
        let now = sum(&members, pss_kb)?;
        if workers(&members).count() == WORKERS as usize && now.abs_diff(before) < AGREES_WITHIN_KB
        {
            return Ok(members);
        }
        ensure!(
            Instant::now() < deadline,
            "{} processes instead of {WORKERS} workers, or they grow after {SETTLED_MAX:?}",
            members.len()
        );
        before = now;
        thread::sleep(PAUSE);
    }
}

/// Returns the processes that are deepest in the family.
fn workers(members: &[Member]) -> impl Iterator<Item = &Member> {
    let deepest = members.iter().map(|member| member.depth).max();
    members
        .iter()
        .filter(move |member| Some(member.depth) == deepest)
}

fn sum<'a>(
    members: impl IntoIterator<Item = &'a Member>,
    kb: impl Fn(u32) -> anyhow::Result<u64>,
) -> anyhow::Result<u64> {
    members.into_iter().map(|member| kb(member.pid)).sum()
}

impl Sample {
    fn of(members: &[Member]) -> anyhow::Result<Self> {
        let first = members.iter().filter(|member| member.depth == 0);
        let zygote = members.iter().filter(|member| member.depth == 1);
        let has_zygote = members.iter().any(|member| member.depth == 2);
        let each = f64::from(WORKERS);
        Ok(Self {
            first_rss: mib(sum(first, rss_kb)?),
            zygote_rss: has_zygote
                .then(|| sum(zygote, rss_kb))
                .transpose()?
                .map(mib),
            worker_rss: mib(sum(workers(members), rss_kb)?) / each,
            worker_pss: mib(sum(workers(members), pss_kb)?) / each,
            all_pss: mib(sum(members, pss_kb)?),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "processes of far below 2^52 kB")]
fn mib(kb: u64) -> f64 {
    kb as f64 / KIB_PER_MIB
}

fn render(rows: &[Row<Sample>], line_up: &LineUp) -> String {
    let mut out = table([
        "server",
        "first, RSS",
        "zygote, RSS",
        "a worker, RSS",
        "a worker, PSS",
        "all, PSS",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 1);
        let zygote = row.samples.iter().filter_map(|sample| sample.zygote_rss);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.first_rss),
            cell(Spread::of(zygote), 1),
            spread(|sample| sample.worker_rss),
            spread(|sample| sample.worker_pss),
            spread(|sample| sample.all_pss),
        ]);
    }
    add_missing(&mut out, line_up);
    out.to_string()
}
