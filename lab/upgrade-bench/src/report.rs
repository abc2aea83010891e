//! Tables of what happened.

use std::collections::BTreeMap;

use bench_kit::{Report, Verdict, table};
use serde_json::{Value, json};

use crate::args::Plan;
use crate::client::Kind;
use crate::counts::Counts;
use crate::measure::Measured;
use crate::server::Contestant;

const NOTHING: &str = "-";

/// Prints one server's failures as soon as they are known.
pub(crate) fn progress(measured: &Measured) {
    let failed: u64 = measured.counts.values().map(Counts::failed).sum();
    let requests: u64 = measured.counts.values().map(|counts| counts.requests).sum();
    let upgrades = measured.upgrades;
    eprintln!("  {upgrades} upgrades, {failed} of {requests} requests failed");
    for line in examples(measured) {
        eprintln!("  {line}");
    }
    if let Some(error) = &measured.error {
        eprintln!("  ERROR: {error}");
    }
}

/// Returns the tables: failures, and connections that were opened again.
pub(crate) fn reports(
    all: &[Measured],
    kinds: &[Kind],
    plan: Plan,
    missing: &[Contestant],
) -> Vec<Report> {
    let failures = Report {
        case: "failed",
        title: "failed requests, of all requests".to_owned(),
        notes: notes(all, plan, missing),
        table: render(all, kinds, |counts| {
            format!("{} / {}", counts.failed(), counts.requests)
        }),
        verdicts: all
            .iter()
            .filter(|one| one.contestant.is_ours())
            .map(verdict)
            .collect(),
        samples: samples(all),
    };
    let reopened = Report {
        case: "reopened",
        title: "connections that clients opened again, after an end in order".to_owned(),
        notes: vec![
            "for HTTP/2 and HTTP/3 the streams in brackets that were sent again, since the server said that \
             it had not begun them"
                .to_owned(),
        ],
        table: render(all, kinds, |counts| match counts.retried {
            0 => counts.reopened.to_string(),
            retried => format!("{} ({retried})", counts.reopened),
        }),
        verdicts: Vec::new(),
        samples: Value::Null,
    };
    vec![failures, reopened]
}

fn render(all: &[Measured], kinds: &[Kind], cell: impl Fn(&Counts) -> String) -> String {
    let names = kinds.iter().map(|kind| kind.name());
    let header = ["server", "upgrades", "s", "processes"].into_iter();
    let mut out = table(header.chain(names));
    for one in all {
        let mut row = vec![
            one.contestant.name().to_owned(),
            one.upgrades.to_string(),
            format!("{:.0}", one.seconds),
            one.processes.to_string(),
        ];
        row.extend(kinds.iter().map(|kind| {
            let counts = one.counts.get(kind);
            counts.map_or_else(|| NOTHING.to_owned(), &cell)
        }));
        out.add_row(row);
    }
    out.to_string()
}

fn notes(all: &[Measured], plan: Plan, missing: &[Contestant]) -> Vec<String> {
    let seconds = plan.transfer.as_secs();
    let mut notes = vec![
        "failed / requests, in one run of each server, all kinds of clients at once; s: from the \
         first upgrade to the end of the last one; processes: the most at once \
         (Greenroom's Perl workers, in groups of their own, not counted)"
            .to_owned(),
        "keep-alive and POST (16 kB): pauses up to 50 ms; seldom: keep-alive with pauses up to \
         2 s; close: one request a connection; TLS: every second client with one request a \
         connection; HTTP/2: four streams at once over TLS; HTTP/3: every second client with one \
         request a connection; WebSocket: echoes, and each \
         connection lives for 20 to 30 s; PSGI: GET and POST"
            .to_owned(),
        format!(
            "uploads (64 kB a second) and downloads (1 MB a second, those of HTTP/3 too) take \
             {seconds} s each"
        ),
        "failed: a request that was sent, in part or whole, and had no right response in 10 s \
         (transfers: 30 s late), or for which no connection could be opened; clients ask the \
         system whether a connection has ended before they send, and send nothing twice but \
         streams that HTTP/2 and HTTP/3 say were not begun; a WebSocket may be closed with 1001 or 1012"
            .to_owned(),
        "nginx, HAProxy, Caddy and Greenroom's sites pass everything on to one axum server; a \
         dash: the server has no such clients"
            .to_owned(),
    ];
    let versions = all.iter().filter_map(|one| one.contestant.version());
    let versions = versions.collect::<Vec<_>>().join("; ");
    if !versions.is_empty() {
        notes.push(versions);
    }
    for contestant in missing {
        notes.push(format!(
            "LEFT OUT, as it is not here: {}",
            contestant.name()
        ));
    }
    for one in all {
        let short = one.upgrades < plan.upgrades;
        let name = one.contestant.name();
        match &one.error {
            Some(error) => notes.push(format!("{name}: ERROR: {}", first_line(error))),
            None if short => notes.push(format!(
                "{name}: {} upgrades in {:.0} s, after which none was begun",
                one.upgrades, one.seconds
            )),
            None => {}
        }
        notes.extend(slowest(one));
        notes.extend(examples(one));
    }
    notes
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Says how long clients of HTTP/3 had to wait at most.
fn slowest(one: &Measured) -> Option<String> {
    let counts = one.counts.get(&Kind::Http3)?;
    let (name, milliseconds) = (one.contestant.name(), counts.slowest.as_millis());
    Some(format!(
        "{name}: the slowest request of HTTP/3, with its connection's handshake: {milliseconds} ms"
    ))
}

/// Returns a line for each kind of client that had failures.
fn examples(one: &Measured) -> Vec<String> {
    let failed = one.counts.iter().filter(|(_, counts)| counts.failed() > 0);
    let line = |(kind, counts): (&Kind, &Counts)| {
        let first = counts.examples.first().map_or("", String::as_str);
        format!(
            "{}, {}: {counts}; one {first}",
            one.contestant.name(),
            kind.name()
        )
    };
    failed.map(line).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn verdict(one: &Measured) -> Verdict {
    let failed: u64 = one.counts.values().map(Counts::failed).sum();
    // A server that was not upgraded as planned has shown nothing.
    let failed = one.error.is_none().then_some(failed as f64);
    Verdict::at_most(
        format!("{}: failed", one.contestant.name()),
        failed,
        0.0,
        "",
    )
}

fn samples(all: &[Measured]) -> Value {
    let by_name: BTreeMap<_, _> = all.iter().map(|one| (one.contestant.name(), one)).collect();
    json!(by_name)
}
