//! CPU time of a generator for each request, in closed loops.

use bench_kit::measure::{ChildrenCpu, CpuReading};
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::{Ab, GreenroomReport, Wrk};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::generator::Generator;
use super::{Context, PATH};

const CONNECTIONS: u32 = 64;
const CONNECTIONS_PER_SECOND: u64 = 20_000;
/// More requests per second than any generator sends within the time of a run.
const AB_REQUESTS_PER_SECOND_MAX: u64 = 200_000;

const TOTAL_MAX_OF_WRK: f64 = 1.05;
const USER_US_MAX: f64 = 1.3;
const TOTAL_MAX_OF_AB: f64 = 1.0;

const GREENROOM: &str = "greenroom bench";
const PERCENT: f64 = 100.0;

#[derive(Clone, Copy, Debug)]
enum Tool {
    Ab,
    Greenroom,
    Wrk,
}

/// The arrival of requests.
#[derive(Clone, Copy, Debug)]
enum Load {
    Connections,
    KeepAlive,
}

/// One run of one generator; CPU time in microseconds per request.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    requests: u64,
    requests_per_second: f64,
    total_us: f64,
    user_us: f64,
    system_us: f64,
    /// The generator's own figure, if it reports one.
    told_us: Option<f64>,
    /// Time that the server could have run but had no core, as a share of the time on it.
    server_waited: f64,
}

/// The result of a run of any tool.
struct Ran {
    requests: u64,
    cpu: ChildrenCpu,
    told_seconds: Option<f64>,
}

pub(super) fn closed(context: &Context) -> anyhow::Result<Report> {
    let wrk = Generator::new("wrk", Tool::Wrk);
    let generators = [
        Generator::new(GREENROOM, Tool::Greenroom),
        wrk.clone(),
        Generator::new("ab -k", Tool::Ab),
        wrk.again(),
    ];
    let rows = run("closed", &generators, Load::KeepAlive, context)?;
    let user = find(&rows, GREENROOM).and_then(|row| row.spread(|sample| sample.user_us));
    let verdicts = vec![
        total_verdict(&rows, "wrk", TOTAL_MAX_OF_WRK),
        Verdict::at_most(
            format!("{GREENROOM} user CPU"),
            user.map(|spread| spread.median),
            USER_US_MAX,
            " us",
        ),
    ];
    Ok(Report {
        case: "closed",
        title: format!("{CONNECTIONS} keep-alive connections, closed loop, one thread"),
        notes: notes(context, "wrk"),
        table: render(&rows, "wrk"),
        verdicts,
        samples: samples(&rows),
    })
}

pub(super) fn perconnection(context: &Context) -> anyhow::Result<Report> {
    let ab = Generator::new("ab", Tool::Ab);
    let greenroom = Generator::new(GREENROOM, Tool::Greenroom);
    let generators = [greenroom, ab.clone(), ab.again()];
    let rows = run("perconnection", &generators, Load::Connections, context)?;
    Ok(Report {
        case: "perconnection",
        title: format!("one request per connection, {CONNECTIONS} at a time"),
        notes: notes(context, "ab"),
        table: render(&rows, "ab"),
        verdicts: vec![total_verdict(&rows, "ab", TOTAL_MAX_OF_AB)],
        samples: samples(&rows),
    })
}

fn run(
    case: &str,
    generators: &[Generator<Tool>],
    load: Load,
    context: &Context,
) -> anyhow::Result<Vec<Row<Sample>>> {
    interleave(case, context.rounds, generators, |generator| {
        measure(generator.kind, load, context)
    })
}

fn measure(tool: Tool, load: Load, context: &Context) -> anyhow::Result<Sample> {
    let server = context.start_raw_server()?;
    let url = server.url(PATH);
    let before = CpuReading::now(server.pid())?;
    let begun = std::time::Instant::now();
    let ran = tool.run(load, &url, context)?;
    let elapsed = begun.elapsed().as_secs_f64();
    let used = before.until(CpuReading::now(server.pid())?);
    let waited = used.waited.as_secs_f64() / used.total.as_secs_f64();
    Ok(Sample::new(&ran, elapsed, waited))
}

impl Tool {
    fn run(self, load: Load, url: &str, context: &Context) -> anyhow::Result<Ran> {
        let seconds = context.seconds;
        let connections = CONNECTIONS_PER_SECOND * u64::from(seconds);
        match (self, load) {
            (Self::Greenroom, Load::KeepAlive) => {
                let bench = context.greenroom()?.keep_alive(CONNECTIONS, seconds);
                bench.run_well(url).map(Ran::from)
            }
            (Self::Greenroom, Load::Connections) => {
                let bench = context.greenroom()?.connections(connections, CONNECTIONS);
                bench.run_well(url).map(Ran::from)
            }
            (Self::Wrk, _) => wrk(url, seconds),
            (Self::Ab, Load::KeepAlive) => ab(
                Ab {
                    keep_alive: true,
                    seconds_max: Some(seconds),
                    ..Ab::new(AB_REQUESTS_PER_SECOND_MAX * u64::from(seconds), CONNECTIONS)
                },
                url,
            ),
            (Self::Ab, Load::Connections) => ab(Ab::new(connections, CONNECTIONS), url),
        }
    }
}

fn wrk(url: &str, seconds: u32) -> anyhow::Result<Ran> {
    let wrk = Wrk {
        connections: CONNECTIONS,
        seconds,
        script: None,
    };
    let report = wrk.run(url)?;
    Ok(Ran {
        requests: report.requests,
        cpu: report.cpu,
        told_seconds: None,
    })
}

fn ab(ab: Ab, url: &str) -> anyhow::Result<Ran> {
    let report = ab.run(url)?;
    Ok(Ran {
        requests: report.requests,
        cpu: report.cpu,
        told_seconds: None,
    })
}

impl From<GreenroomReport> for Ran {
    fn from(report: GreenroomReport) -> Self {
        Self {
            requests: report.good(),
            cpu: report.cpu,
            told_seconds: Some(report.told_cpu_seconds()),
        }
    }
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn new(ran: &Ran, elapsed_seconds: f64, server_waited: f64) -> Self {
        let requests = ran.requests as f64;
        let each_us = |seconds: f64| seconds * 1e6 / requests;
        Self {
            requests: ran.requests,
            requests_per_second: requests / elapsed_seconds,
            total_us: each_us(ran.cpu.total().as_secs_f64()),
            user_us: each_us(ran.cpu.user.as_secs_f64()),
            system_us: each_us(ran.cpu.system.as_secs_f64()),
            told_us: ran.told_seconds.map(each_us),
            server_waited,
        }
    }
}

fn notes(context: &Context, peer: &str) -> Vec<String> {
    vec![
        format!(
            "medians of {} rounds (least–most); x: times {peer}, within the round; the server is \
            raw-epoll on the other core",
            context.rounds
        ),
        "CPU time is the generator's own, all of it, as the kernel has it when the program has \
        ended; told: what greenroom bench says it spent while it made load"
            .to_owned(),
        "server waited: time that the server was without its core, of time on it".to_owned(),
    ]
}

fn render(rows: &[Row<Sample>], peer: &str) -> String {
    let mut out = table([
        "generator",
        "CPU us/request",
        "user",
        "system",
        "total x",
        "user x",
        "told us",
        "requests/s",
        "server waited %",
    ]);
    let peer = find(rows, peer);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 2);
        let ratio =
            |value: fn(&Sample) -> f64| cell(peer.and_then(|peer| row.ratio(peer, value)), 2);
        let told = row.samples.iter().filter_map(|sample| sample.told_us);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.total_us),
            spread(|sample| sample.user_us),
            spread(|sample| sample.system_us),
            ratio(|sample| sample.total_us),
            ratio(|sample| sample.user_us),
            cell(bench_kit::Spread::of(told), 2),
            cell(row.spread(|sample| sample.requests_per_second), 0),
            cell(row.spread(|sample| sample.server_waited * PERCENT), 0),
        ]);
    }
    out.to_string()
}

fn total_verdict(rows: &[Row<Sample>], peer: &str, at_most: f64) -> Verdict {
    let measured = find(rows, GREENROOM)
        .zip(find(rows, peer))
        .and_then(|(ours, peer)| ours.ratio(peer, |sample| sample.total_us));
    Verdict::at_most(
        format!("{GREENROOM} total CPU / {peer}"),
        measured.map(|spread| spread.median),
        at_most,
        " x",
    )
}
