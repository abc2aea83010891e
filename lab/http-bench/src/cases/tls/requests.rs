//! Requests on connections that stay.

use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::H2load;
use bench_kit::{Report, Spread, Verdict, cell, table};

use super::site::{GREENROOM, HYPER, Running, Site};
use crate::cases::Context;
use crate::cases::cost::Cost;
use crate::cases::entry::{Entry, entry_name};

const CONNECTIONS: u32 = 64;
const H2_CONNECTIONS: u32 = 8;
const H2_STREAMS: u32 = 16;
const WARM_UP_SECONDS: u32 = 1;
const KEEPALIVE_US_MAX: f64 = 9.8;
const OVER_PLAIN_US_MAX: f64 = 3.0;
const H2_VERSUS_HYPER_MAX: f64 = 1.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Plain,
    Tls,
    H2,
}

impl Load {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tls => "TLS",
            Self::H2 => "HTTP/2",
        }
    }

    /// Makes the load; returns the number of requests that got their responses.
    fn run(self, server: &Running, seconds: u32, context: &Context) -> anyhow::Result<u64> {
        let url = match self {
            Self::Plain => server.http(),
            Self::Tls | Self::H2 => server.https(),
        };
        if self == Self::H2 {
            let load = H2load {
                connections: H2_CONNECTIONS,
                streams: H2_STREAMS,
                seconds,
            };
            return load.run(&url);
        }
        let bench = context.bench()?.keep_alive(CONNECTIONS, seconds);
        Ok(bench.flags(["--insecure"]).run_well(&url)?.good())
    }
}

pub(crate) fn keepalive(context: &Context) -> anyhow::Result<Report> {
    let (rows, mut notes) = measure_all("tls-keepalive", &[Load::Plain, Load::Tls], context)?;
    notes.push("over plain: TLS less the same server without it, within the round".to_owned());
    let ours = find(&rows, &entry_name(GREENROOM, Load::Tls.name()));
    let total = ours.and_then(|row| row.spread(|cost| cost.total_us));
    let over = ours.and_then(|row| over_plain(row, &rows));
    let verdict = |what, spread: Option<Spread>, goal| {
        let median = spread.map(|spread| spread.median);
        Verdict::at_most(format!("{GREENROOM} {what}"), median, goal, " us")
    };
    Ok(Report {
        case: "tls-keepalive",
        title: format!("{CONNECTIONS} keep-alive connections over TLS, and without"),
        notes,
        table: render(&rows, true),
        verdicts: vec![
            verdict("CPU, TLS", total, KEEPALIVE_US_MAX),
            verdict("CPU, TLS over plain", over, OVER_PLAIN_US_MAX),
        ],
        samples: samples(&rows),
    })
}

pub(crate) fn h2(context: &Context) -> anyhow::Result<Report> {
    let (rows, notes) = measure_all("tls-h2", &[Load::H2], context)?;
    let ours = find(&rows, &entry_name(GREENROOM, Load::H2.name()));
    let ratio = ours.and_then(|row| versus_hyper(row, &rows));
    Ok(Report {
        case: "tls-h2",
        title: format!("HTTP/2 over TLS (h2load -c{H2_CONNECTIONS} -m{H2_STREAMS})"),
        notes,
        table: render(&rows, false),
        verdicts: vec![Verdict::at_most(
            format!("{GREENROOM} CPU / {HYPER}"),
            ratio.map(|spread| spread.median),
            H2_VERSUS_HYPER_MAX,
            " x",
        )],
        samples: samples(&rows),
    })
}

/// Measures all servers under each of these loads; returns the notes on it, too.
fn measure_all(
    case: &str,
    loads: &[Load],
    context: &Context,
) -> anyhow::Result<(Vec<Row<Cost>>, Vec<String>)> {
    let site = Site::new()?;
    let (servers, mut notes) = site.servers(context)?;
    let entry = |server| {
        loads
            .iter()
            .map(move |load| Entry::new(server, *load, load.name()))
    };
    let mut entries: Vec<Entry<Load>> = servers.iter().flat_map(entry).collect();
    let mut controls = entries.iter();
    let control = controls.find(|entry| entry.server.name == HYPER && entry.load != Load::Plain);
    let control = control.map(Entry::again);
    entries.extend(control);
    let rows = interleave(case, context.rounds, &entries, |entry| {
        let server = Running::start(&entry.server, context)?;
        entry.load.run(&server, WARM_UP_SECONDS, context)?;
        Cost::of(server.pid(), || {
            entry.load.run(&server, context.seconds, context)
        })
    })?;
    notes.push(format!(
        "medians of {} rounds (least–most); CPU time is of all processes of the server, the \
         handshakes included; x: times {HYPER} under the same load, within the round; waited: time \
         without the core, of time on it",
        context.rounds
    ));
    Ok((rows, notes))
}

fn render(rows: &[Row<Cost>], has_plain: bool) -> String {
    let mut header = vec!["server", "CPU us/request", "x", "waited %"];
    if has_plain {
        header.insert(2, "over plain us");
    }
    let mut out = table(header);
    for row in rows {
        let mut cells = vec![
            row.name.clone(),
            cell(row.spread(|cost| cost.total_us), 2),
            cell(versus_hyper(row, rows), 2),
            Cost::waited(row, |cost| cost),
        ];
        if has_plain {
            cells.insert(2, cell(over_plain(row, rows), 2));
        }
        out.add_row(cells);
    }
    out.to_string()
}

/// The load in the name of a row.
fn load_of(row: &Row<Cost>) -> Option<Load> {
    let (_, load) = row.name.rsplit_once(", ")?;
    let loads = [Load::Plain, Load::Tls, Load::H2];
    loads
        .into_iter()
        .find(|known| load.starts_with(known.name()))
}

fn versus_hyper(row: &Row<Cost>, rows: &[Row<Cost>]) -> Option<Spread> {
    let peer = find(rows, &entry_name(HYPER, load_of(row)?.name()))?;
    row.ratio(peer, |cost| cost.total_us)
}

fn over_plain(row: &Row<Cost>, rows: &[Row<Cost>]) -> Option<Spread> {
    let (server, _) = row.name.rsplit_once(", ")?;
    let plain = find(rows, &entry_name(server, Load::Plain.name()))?;
    let is_tls = load_of(row) == Some(Load::Tls);
    is_tls.then(|| row.difference(plain, |cost| cost.total_us))?
}
