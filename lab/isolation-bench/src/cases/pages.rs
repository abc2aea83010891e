//! Pages of an application while many log in at once.

use std::thread;
use std::time::Duration;

use bench_kit::process::Server;
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;
use tokio::time::Instant;

use super::Context;
use super::calibrate::Heavy;
use crate::client::{self, Counts, Crowd, Polite, Summary, addresses};
use crate::contestant::{Contestant, LAYER, SERVER, all_servers};

const ROUNDS_MAX: usize = 3;
/// A measurement takes so many times the seconds of others: there are 50 pages in one.
const SECONDS_FACTOR: u32 = 2;

const LOG_INS: u8 = 40;
/// As argon2 takes with its usual parameters.
const LOG_IN_MS: f64 = 28.0;
const LOG_IN_TIMEOUT: Duration = Duration::from_secs(10);
const PAGE_MS: f64 = 0.2;
const READERS: u8 = 10;
/// Between two pages of all readers together.
const PAGE_PERIOD: Duration = Duration::from_millis(20);

const RESPONSES_PERCENT: f64 = 100.0;
const P99_MS_MAX: f64 = 25.0;

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// A log-in, with the time that it takes alone.
    log_in: Heavy,
    unloaded: Summary,
    pages: Summary,
    waves: Waves,
}

/// Log-ins, 40 at once, and again as soon as all got their responses.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Waves {
    count: u32,
    log_ins: Counts,
    longest_ms: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let ours = vec![
        Contestant::server(SERVER, "inline"),
        Contestant::axum(LAYER, "auto"),
    ];
    let (contestants, left_out) = all_servers(context, ours)?;
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("pages", rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    let mut notes = vec![
        format!(
            "medians of {rounds} rounds (least–most) of {} s; {LOG_INS} log-ins at once from as \
                many addresses, and again when all get their responses, each a /fib/N of about \
                {LOG_IN_MS} ms; pages are /page/N of about {PAGE_MS} ms, 50 a second from \
                {READERS} other addresses",
            seconds(context)
        ),
        "N is found for each server, idle, so that all compute for about as long; a page's latency \
            is of responses with 200, from the time at which it was due".to_owned(),
        "all clients are threads of this program, at the usual priority, on the cores that the \
            server has".to_owned(),
        "responses are judged by the worst round, p99 by the median".to_owned(),
    ];
    notes.extend(left_out);
    Ok(Report {
        case: "pages",
        title: format!("pages of {PAGE_MS} ms at 50/s while {LOG_INS} log in at once"),
        notes,
        table: render(&rows),
        verdicts: find(&rows, SERVER).map(verdicts).unwrap_or_default(),
        samples: samples(&rows),
    })
}

fn seconds(context: &Context) -> u32 {
    context.seconds * SECONDS_FACTOR
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    context.warm_up(&server)?;
    let log_in = Heavy::of(context, &server, LOG_IN_MS)?;
    let pages = Polite {
        sources: addresses(3, READERS),
        path: log_in.page(PAGE_MS),
        period: PAGE_PERIOD,
    };
    let unloaded = client::run(pages.ask(server.address(), end(context)))?;
    let (pages, waves) = beside(&server, &pages, &log_in.fib(), end(context));
    Ok(Sample {
        log_in,
        unloaded,
        pages: pages?,
        waves: waves?,
    })
}

fn end(context: &Context) -> Instant {
    Instant::now() + Duration::from_secs(seconds(context).into())
}

fn beside(
    server: &Server,
    pages: &Polite,
    log_in: &str,
    until: Instant,
) -> (anyhow::Result<Summary>, anyhow::Result<Waves>) {
    let crowd = Crowd {
        sources: addresses(2, LOG_INS),
        path: log_in.to_owned(),
        timeout: LOG_IN_TIMEOUT,
    };
    let address = server.address();
    thread::scope(|scope| {
        let waves = scope.spawn(|| {
            client::run(async {
                let mut waves = Waves::default();
                while Instant::now() < until {
                    waves.add(crowd.wave(address).await);
                }
                waves
            })
        });
        let pages = client::run(pages.ask(address, until));
        (pages, waves.join().expect("clients do not panic"))
    })
}

impl Waves {
    fn add(&mut self, wave: client::Wave) {
        self.count += 1;
        self.log_ins = self.log_ins.and(wave.counts);
        self.longest_ms = self.longest_ms.max(wave.longest_ms);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn refused_percent(&self) -> f64 {
        let refused = self.log_ins.refused + self.log_ins.failed;
        refused as f64 / self.log_ins.all().max(1) as f64 * 100.0
    }
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "log-in alone ms",
        "unloaded page p99 ms",
        "pages answered %",
        "p50 ms",
        "p99 ms",
        "longest ms",
        "waves",
        "log-ins refused or failed %",
        "longest wave ms",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.log_in.alone_ms, 1),
            spread(|sample| sample.unloaded.p99_ms, 2),
            spread(|sample| sample.pages.answered_percent, 1),
            spread(|sample| sample.pages.p50_ms, 2),
            spread(|sample| sample.pages.p99_ms, 2),
            spread(|sample| sample.pages.longest_ms, 1),
            spread(|sample| sample.waves.count.into(), 0),
            spread(|sample| sample.waves.refused_percent(), 1),
            spread(|sample| sample.waves.longest_ms, 0),
        ]);
    }
    out.to_string()
}

fn verdicts(row: &Row<Sample>) -> Vec<Verdict> {
    let answered = row.spread(|sample| sample.pages.answered_percent);
    let p99 = row.spread(|sample| sample.pages.p99_ms);
    vec![
        Verdict::at_least(
            format!("{}: pages answered", row.name),
            answered.map(|spread| spread.min),
            RESPONSES_PERCENT,
            " %",
        ),
        Verdict::at_most(
            format!("{}: pages p99", row.name),
            p99.map(|spread| spread.median),
            P99_MS_MAX,
            " ms",
        ),
    ]
}
