//! Two idle connections, and their effect on requests beside them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::GreenroomReport;
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::{Context, MILLIS_PER_SECOND, add_missing};
use crate::contestant::{Contestant, LineUp};
use crate::peer::Peer;

const APPLICATION: &str = "hello.psgi";
const REQUESTS: u64 = 500;
const CONCURRENCY: u32 = 10;
/// The seconds for which requests are sent, if the responses do not end sooner, and after which a
/// client gives up.
const SECONDS_MAX: &str = "10";
/// The time in which the server must then respond to the connection that is kept.
const RESPONSE_MAX: Duration = Duration::from_secs(10);
/// The difference that two runs of some tens of milliseconds may have by chance.
const ADDED_MS_MAX: f64 = 10.0;

const PEERS: [Peer; 6] = [
    Peer::Greenroom,
    Peer::Twiggy,
    Peer::FeersumKeepAlive,
    Peer::Starman,
    Peer::Starlet,
    Peer::AcceptLoop,
];

/// The same load twice, against the same server.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    without_ms: f64,
    with_ms: f64,
    longest_with_ms: f64,
    unanswered_with: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let contestant = |peer| Contestant::new(peer, APPLICATION);
    let line_up = LineUp::of(PEERS.map(contestant), context);
    let rows = interleave("idle", context.rounds, &line_up.present, |contestant| {
        measure(contestant, context)
    })?;
    let mut notes = vec![
        format!(
            "medians of {} rounds (least–most); time for {REQUESTS} requests, {CONCURRENCY} at \
             once, one connection each, as ab -n {REQUESTS} -c {CONCURRENCY}, without and with the \
             two idle ones; server on core 0, load on core 1",
            context.rounds
        ),
        "idle: one that has connected and said nothing, and one that has asked to be \
         kept, had a response, and says nothing more"
            .to_owned(),
        "accept loop: Perl in the spirit of the smallest servers, with blocking reads \
         and a time-out of 2 s (lab/http-bench/standins/pixel.pl)"
            .to_owned(),
        format!("no request is begun after {SECONDS_MAX} s, and none waits for longer"),
    ];
    notes.extend(line_up.notes.iter().cloned());
    Ok(Report {
        case: "idle",
        title: "two idle connections held open, one worker".to_owned(),
        notes,
        table: render(&rows, &line_up),
        verdicts: verdicts(find(&rows, Peer::Greenroom.name())),
        samples: samples(&rows),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    let url = server.url("/");
    let bench = contestant
        .bench(context)?
        .connections(REQUESTS, CONCURRENCY);
    let bench = bench.flags(["-t", SECONDS_MAX, "-s", SECONDS_MAX]);
    bench.run_well(&url)?;
    let without = bench.run_well(&url)?;
    let idle = TwoIdle::hold(server.address())?;
    let with = bench.run_against_all_odds(&url)?;
    drop(idle);
    Ok(Sample {
        without_ms: took_ms(&without),
        with_ms: took_ms(&with),
        longest_with_ms: with.latency().max_ms,
        unanswered_with: (REQUESTS - with.good()) as f64,
    })
}

fn took_ms(report: &GreenroomReport) -> f64 {
    report.elapsed_seconds * MILLIS_PER_SECOND
}

/// Idle connections, held until this value is dropped.
struct TwoIdle {
    _kept: TcpStream,
    _silent: TcpStream,
}

impl TwoIdle {
    fn hold(address: SocketAddr) -> anyhow::Result<Self> {
        let mut kept = TcpStream::connect(address).context("the kept connection")?;
        kept.set_read_timeout(Some(RESPONSE_MAX))?;
        kept.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")?;
        let read = kept.read(&mut [0; 4096]).context("the kept connection")?;
        ensure!(read > 0, "the kept connection got no response");
        let silent = TcpStream::connect(address).context("the silent connection")?;
        Ok(Self {
            _kept: kept,
            _silent: silent,
        })
    }
}

fn render(rows: &[Row<Sample>], line_up: &LineUp) -> String {
    let mut out = table([
        "server",
        "without ms",
        "with ms",
        "added ms",
        "longest with ms",
        "unanswered",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 0);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.without_ms),
            spread(|sample| sample.with_ms),
            spread(Sample::added_ms),
            spread(|sample| sample.longest_with_ms),
            spread(|sample| sample.unanswered_with),
        ]);
    }
    add_missing(&mut out, line_up);
    out.to_string()
}

impl Sample {
    fn added_ms(&self) -> f64 {
        self.with_ms - self.without_ms
    }
}

fn verdicts(ours: Option<&Row<Sample>>) -> Vec<Verdict> {
    let spread = |value: fn(&Sample) -> f64| ours.and_then(|row| row.spread(value));
    vec![
        Verdict::at_most(
            "Greenroom, added by two idle connections",
            spread(Sample::added_ms).map(|spread| spread.median),
            ADDED_MS_MAX,
            " ms",
        ),
        Verdict::at_most(
            "Greenroom, unanswered in any round",
            spread(|sample| sample.unanswered_with).map(|spread| spread.max),
            0.0,
            "",
        ),
    ]
}
