//! Requests that block their workers, all at once, beside requests to a sister application.

use bench_kit::process::Server;
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::Stream;
use bench_kit::{Report, Spread, Verdict, cell, table};
use serde::Serialize;

use super::{Context, MILLIS_PER_SECOND, PERCENT, add_missing};
use crate::contestant::{Contestant, LineUp, Placement};
use crate::peer::Peer;

const ROUNDS_MAX: usize = 3;

const APPLICATION: &str = "echo_blocking.psgi";
const SISTER: &str = "echo_async.psgi";
const WORKERS: u32 = 50;
const REQUESTS: u32 = 200;
/// Four times two seconds; the time beyond this is the server's.
const TOTAL_SECONDS_MAX: f64 = 8.1;
/// The seconds after which a client gives up.
const TIMEOUT_SECONDS: &str = "30";

const HELLO_RATE: u32 = 100;
/// The shortest time that the requests take.
const HELLO_SECONDS: &str = "8";
const HELLO_P99_MS_MAX: f64 = 10.0;

const WARM_UP_REQUESTS: u64 = 200;
const WARM_UP_CONNECTIONS: u32 = 50;

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    unanswered: f64,
    total_seconds: f64,
    /// `None` for servers without a sister application.
    hello: Option<Hello>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Hello {
    answered_percent: f64,
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let starman = Contestant::new(Peer::Starman, APPLICATION)
        .workers(WORKERS)
        .placed(Placement::Free);
    let line_up = LineUp::of([ours(), starman], context);
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("blocking", rounds, &line_up.present, |contestant| {
        measure(contestant, context)
    })?;
    let mut notes = vec![
        format!(
            "medians of {rounds} rounds (least–most); total: until the last of the {REQUESTS} got \
                its response; arithmetic allows 8.0 s; server and load on both cores"
        ),
        format!(
            "/hello: of {SISTER} with one worker, mounted on the same front, asked {HELLO_RATE} \
             times a second meanwhile; Starman has one application only, and only the {REQUESTS}"
        ),
    ];
    notes.extend(line_up.notes.iter().cloned());
    Ok(Report {
        case: "blocking",
        title: format!("{REQUESTS} requests at once that sleep for 2 s, {WORKERS} workers"),
        notes,
        table: render(&rows, &line_up),
        verdicts: verdicts(find(&rows, Peer::Greenroom.name())),
        samples: samples(&rows),
    })
}

/// Returns our server with the sister application at the root, the one that blocks below `/slow`.
fn ours() -> Contestant {
    let file = Peer::Greenroom.file(APPLICATION);
    let mount = format!("/slow={} workers={WORKERS}", file.display());
    Contestant::new(Peer::Greenroom, SISTER)
        .further(["--mount".to_owned(), mount])
        .placed(Placement::Free)
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let server = contestant.start(context)?;
    let has_sister = contestant.peer == Peer::Greenroom;
    let base = if has_sister { "/slow" } else { "" };
    warm_up(contestant, &server, base, context)?;
    let mut bench = contestant.bench(context)?;
    bench = bench.connections(REQUESTS.into(), REQUESTS);
    bench = bench.flags(["-s", TIMEOUT_SECONDS]);
    if has_sister {
        let url = server.url("/hello");
        let hello = format!("rate={HELLO_RATE} name=hello keep-alive=yes {url}");
        bench = bench.flags(["-t", HELLO_SECONDS, "--also", &hello]);
    }
    let report = bench.run(&server.url(&format!("{base}/?field=hello")))?;
    Ok(Sample::of(report.streams()))
}

/// Sends requests until every worker has loaded its application, and Perl the files that it loads
/// at the first request.
fn warm_up(
    contestant: &Contestant,
    server: &Server,
    base: &str,
    context: &Context,
) -> anyhow::Result<()> {
    for path in [format!("{base}/"), "/hello".to_owned()] {
        let bench = contestant.bench(context)?;
        let bench = bench.connections(WARM_UP_REQUESTS, WARM_UP_CONNECTIONS);
        bench.run_well(&server.url(&path))?;
    }
    Ok(())
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn of(streams: &[Stream]) -> Self {
        let blocking = &streams[0];
        Self {
            unanswered: f64::from(REQUESTS) - blocking.with_status(200) as f64,
            // All of them begin at once.
            total_seconds: blocking.latency().max_ms / MILLIS_PER_SECOND,
            hello: streams.get(1).map(Hello::of),
        }
    }
}

impl Hello {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn of(stream: &Stream) -> Self {
        let due = stream.requests().due.max(1);
        let latency = stream.latency();
        Self {
            answered_percent: stream.with_status(200) as f64 / due as f64 * PERCENT,
            p50_ms: latency.p50_ms,
            p99_ms: latency.p99_ms,
            longest_ms: latency.max_ms,
        }
    }
}

fn hello(row: &Row<Sample>, value: impl Fn(Hello) -> f64) -> Option<Spread> {
    let samples = row.samples.iter();
    Spread::of(samples.filter_map(|sample| sample.hello.map(&value)))
}

fn render(rows: &[Row<Sample>], line_up: &LineUp) -> String {
    let mut out = table([
        "server",
        "total s",
        "unanswered",
        "/hello answered %",
        "p50 ms",
        "p99 ms",
        "longest ms",
    ]);
    for row in rows {
        out.add_row([
            row.name.clone(),
            cell(row.spread(|sample| sample.total_seconds), 3),
            cell(row.spread(|sample| sample.unanswered), 0),
            cell(hello(row, |hello| hello.answered_percent), 1),
            cell(hello(row, |hello| hello.p50_ms), 2),
            cell(hello(row, |hello| hello.p99_ms), 2),
            cell(hello(row, |hello| hello.longest_ms), 1),
        ]);
    }
    add_missing(&mut out, line_up);
    out.to_string()
}

fn verdicts(ours: Option<&Row<Sample>>) -> Vec<Verdict> {
    let most = |value: fn(&Sample) -> f64| Some(ours?.spread(value)?.max);
    let p99_ms = ours.and_then(|row| hello(row, |hello| hello.p99_ms));
    vec![
        Verdict::at_most(
            "Greenroom, unanswered in any round",
            most(|sample| sample.unanswered),
            0.0,
            "",
        ),
        Verdict::at_most(
            "Greenroom, total in any round",
            most(|sample| sample.total_seconds),
            TOTAL_SECONDS_MAX,
            " s",
        ),
        Verdict::at_most(
            "Greenroom, /hello p99 in any round",
            p99_ms.map(|spread| spread.max),
            HELLO_P99_MS_MAX,
            " ms",
        ),
    ]
}
