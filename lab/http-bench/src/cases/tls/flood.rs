//! Requests on open connections, while another client floods the server with handshakes.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use bench_kit::process::{LOAD_CORE, pinned};
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::{GreenroomReport, Priority, Stream, run as run_program};
use bench_kit::{Report, Verdict, cell, table};
use http_bench_clients::Flood;
use serde::Serialize;

use super::site::{GREENROOM, Running, Site};
use crate::cases::Context;
use crate::cases::entry::{Entry, entry_name};

/// Floods, as multiples of the handshakes that the server finishes with nothing else to do.
const FACTORS: [u32; 3] = [0, 2, 6];
/// Requests a second on each of the two open connections.
const RATE: u32 = 200;
/// Time of a request before it counts as failed.
const REQUEST_TIMEOUT: &str = "2s";
/// Time in which the open connections open, and the requests before the flood.
const CALM: Duration = Duration::from_millis(500);
const CAPACITY_CLIENTS: u32 = 64;
const CAPACITY_SECONDS: u32 = 1;
/// Most connections of the flood at once.
const FLOOD_CONNECTIONS_MAX: u32 = 8_000;
const P99_MS_MAX: f64 = 2.5;
const PERCENT: f64 = 100.0;

type StreamOf = fn(&Sample) -> &Stream;

#[derive(Debug, Serialize)]
struct Sample {
    load: GreenroomReport,
    /// Handshakes a second that the server finishes with nothing else to do.
    capacity: f64,
    flood: Flood,
}

pub(crate) fn flood(context: &Context) -> anyhow::Result<Report> {
    let site = Site::new()?;
    let (servers, mut notes) = site.servers(context)?;
    let entries: Vec<Entry<u32>> = FACTORS
        .iter()
        .flat_map(|factor| {
            let servers = servers.iter();
            servers.map(|server| Entry::new(server, *factor, &name(*factor)))
        })
        .collect();
    let rows = interleave("tls-flood", context.rounds, &entries, |entry| {
        measure(entry, context)
    })?;
    notes.extend(self::notes(context));
    let floods = FACTORS.iter().filter(|factor| **factor > 0);
    Ok(Report {
        case: "tls-flood",
        title: "/hello on open connections beside a flood of full handshakes".to_owned(),
        notes,
        table: render(&rows),
        verdicts: floods.flat_map(|factor| verdicts(*factor, &rows)).collect(),
        samples: samples(&rows),
    })
}

fn name(factor: u32) -> String {
    if factor == 0 {
        "no flood".to_owned()
    } else {
        format!("{factor} x")
    }
}

fn notes(context: &Context) -> [String; 3] {
    [
        format!(
            "medians of {} rounds (least–most) of {} s; {RATE} requests a second by schedule on \
             one connection without TLS and on one with it, both open {CALM:?} before the flood \
             begins; p99 from the scheduled time; answered: of those due, with 200 within \
             {REQUEST_TIMEOUT}",
            context.rounds, context.seconds
        ),
        "each connection of the flood sends a first message (AES-128, X25519), and is reset when \
         the server's part of the handshake has come, or after 2 s: a client that did its own part \
         would need as much CPU as the server"
            .to_owned(),
        format!(
            "capacity: handshakes a second that the server finishes for {CAPACITY_CLIENTS} such \
             clients in closed loops, just before; offered: connections of the flood that were \
             opened, at most {FLOOD_CONNECTIONS_MAX} at once; done: those of which the server's \
             part came; both as multiples of capacity; refused, unanswered: % of those opened"
        ),
    ]
}

fn measure(entry: &Entry<u32>, context: &Context) -> anyhow::Result<Sample> {
    let server = Running::start(&entry.server, context)?;
    let clients = ["--clients".to_owned(), CAPACITY_CLIENTS.to_string()];
    let alone = handshakes(&server, CAPACITY_SECONDS, &clients, context)?;
    let capacity = alone.answered_per_second();
    let (load, flood) = thread::scope(|scope| {
        let load = scope.spawn(|| requests(&server, context));
        thread::sleep(CALM);
        let flood = flooded(&server, f64::from(entry.load) * capacity, context);
        let load = load.join();
        (load.map_err(|_| anyhow!("the load panicked")), flood)
    });
    Ok(Sample {
        load: load??,
        capacity,
        flood: flood?,
    })
}

/// Floods at so many handshakes a second, if any.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive and small"
)]
fn flooded(server: &Running, rate: f64, context: &Context) -> anyhow::Result<Flood> {
    let rate = rate as u32;
    if rate == 0 {
        return Ok(Flood::default());
    }
    let arguments = [
        "--clients".to_owned(),
        FLOOD_CONNECTIONS_MAX.to_string(),
        "--rate".to_owned(),
        rate.to_string(),
    ];
    handshakes(server, context.seconds, &arguments, context)
}

fn handshakes(
    server: &Running,
    seconds: u32,
    arguments: &[String],
    context: &Context,
) -> anyhow::Result<Flood> {
    let mut client = pinned(LOAD_CORE, context.binaries.path("hello-flood")?);
    client.args(["--url", &server.https(), "--seconds", &seconds.to_string()]);
    let told = run_program(client.args(arguments))?.stdout;
    serde_json::from_str(&told).context("hello-flood's output")
}

/// Sends requests on an open connection without TLS, and on one with it.
fn requests(server: &Running, context: &Context) -> anyhow::Result<GreenroomReport> {
    let millis = u64::from(context.seconds) * 1_000 + u64::try_from(CALM.as_millis())?;
    let duration = format!("{millis}ms");
    let rate = RATE.to_string();
    let tls = format!(
        "rate={RATE} connections=1 keep-alive=yes name=TLS {}",
        server.https()
    );
    let flags = ["-k", "-c", "1", "--rate", &rate, "-t", &duration, "-s"];
    let bench = context.bench()?.priority(Priority::highest()).flags(flags);
    let bench = bench.flags([REQUEST_TIMEOUT, "--insecure", "--also", &tls]);
    bench.run_against_all_odds(&server.http())
}

impl Sample {
    fn plain(&self) -> &Stream {
        &self.load.streams()[0]
    }

    fn tls(&self) -> &Stream {
        &self.load.streams()[1]
    }

    fn share(&self, rate: f64) -> f64 {
        rate / self.capacity
    }

    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn percent_of_opened(&self, count: u64) -> f64 {
        PERCENT * count as f64 / self.flood.opened.max(1) as f64
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn answered(stream: &Stream) -> f64 {
    PERCENT * stream.with_status(200) as f64 / stream.requests().due.max(1) as f64
}

fn p99_ms(stream: &Stream) -> f64 {
    stream.latency().p99_ms
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server, flood",
        "plain answered %",
        "plain p99 ms",
        "TLS answered %",
        "TLS p99 ms",
        "capacity/s",
        "offered x",
        "done x",
        "refused %",
        "unanswered %",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| answered(sample.plain()), 1),
            spread(|sample| p99_ms(sample.plain()), 1),
            spread(|sample| answered(sample.tls()), 1),
            spread(|sample| p99_ms(sample.tls()), 1),
            spread(|sample| sample.capacity, 0),
            spread(|sample| sample.share(sample.flood.opened_per_second()), 2),
            spread(|sample| sample.share(sample.flood.answered_per_second()), 2),
            spread(|sample| sample.percent_of_opened(sample.flood.refused), 0),
            spread(
                |sample| sample.percent_of_opened(sample.flood.unanswered),
                0,
            ),
        ]);
    }
    out.to_string()
}

/// Beside one flood: all requests answered in each round, and in good time in the median.
fn verdicts(factor: u32, rows: &[Row<Sample>]) -> Vec<Verdict> {
    let row = find(rows, &entry_name(GREENROOM, &name(factor)));
    let streams: [(&str, StreamOf); 2] = [("plain", Sample::plain), ("TLS", Sample::tls)];
    let verdict = |(connection, stream): (&str, StreamOf)| {
        let what = format!("{GREENROOM}, {factor} x, {connection}");
        let spread = |value: fn(&Stream) -> f64| {
            row.and_then(|row| row.spread(|sample| value(stream(sample))))
        };
        [
            Verdict::at_least(
                format!("{what}: answered in each round"),
                spread(answered).map(|spread| spread.min),
                PERCENT,
                " %",
            ),
            Verdict::at_most(
                format!("{what}: p99"),
                spread(p99_ms).map(|spread| spread.median),
                P99_MS_MAX,
                " ms",
            ),
        ]
    };
    streams.into_iter().flat_map(verdict).collect()
}
