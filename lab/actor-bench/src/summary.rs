//! All cases in one table: the goal, Greenroom, and its ratio to each of the others.

use bench_kit::rounds::{AGAIN, Contestant as _, find};
use bench_kit::{Report, cell, table};
use serde_json::Value;

use crate::contestant::Contestant;
use crate::goals::{goal, unit};
use crate::measured::Measured;
use crate::peer::Peer;

pub(crate) fn report(all: &[Measured], contestants: &[Contestant]) -> Report {
    let mut notes = vec![
        "medians; in brackets Greenroom as a multiple of this program, the median of the rounds"
            .to_owned(),
        format!(
            "{AGAIN}: the first program a second time, and how far two measurements of the same \
             stray from 1"
        ),
    ];
    let peers = contestants
        .iter()
        .filter(|one| !one.name().ends_with(AGAIN));
    notes.extend(peers.map(|one| format!("{}: {}", one.name(), one.peer.note())));
    Report {
        case: "summary",
        title: "all cases, in nanoseconds; idle in bytes".to_owned(),
        notes,
        table: render(all, contestants),
        verdicts: Vec::new(),
        samples: Value::Null,
    }
}

fn render(all: &[Measured], contestants: &[Contestant]) -> String {
    let ours = Peer::Greenroom.name();
    let others: Vec<&str> = contestants
        .iter()
        .map(bench_kit::rounds::Contestant::name)
        .filter(|name| *name != ours)
        .collect();
    let header = ["case", "goal", ours, "x best"];
    let mut out = table(header.into_iter().chain(others.iter().copied()));
    for measured in all {
        let best = measured.ours().zip(measured.best());
        let x_best = best.and_then(|(ours, best)| measured.ratio(ours, best));
        let cells = [
            measured.case.name(),
            format!("<= {}{}", goal(measured.case), unit(measured.case)),
            cell(measured.ours().and_then(|row| measured.spread(row)), 1),
            cell(x_best, 2),
        ];
        let others = others.iter().map(|name| other(measured, name));
        out.add_row(cells.into_iter().chain(others));
    }
    out.to_string()
}

fn other(measured: &Measured, name: &str) -> String {
    let Some(row) = find(&measured.rows, name) else {
        return "-".to_owned();
    };
    let median = measured
        .spread(row)
        .map_or(f64::NAN, |spread| spread.median);
    let ratio = measured.ours().and_then(|ours| measured.ratio(ours, row));
    match ratio {
        Some(ratio) => format!("{median:.1} ({:.2} x)", ratio.median),
        None => format!("{median:.1}"),
    }
}
