//! From samples to a table and verdicts.

use bench_kit::rounds::{Row, find, samples};
use bench_kit::{Report, Verdict, cell, table};

use super::{Goal, Metric, Sample, Spec};
use crate::cases::Context;

const PERCENT: f64 = 100.0;

pub(super) fn tell(spec: &Spec, rows: &[Row<Sample>], context: &Context) -> Report {
    Report {
        case: spec.case,
        title: spec.title.to_owned(),
        notes: vec![format!(
            "medians of {} rounds (least–most); x: times {}, within the round; waited: time \
                without the core, of time on it",
            context.rounds, spec.peer
        )],
        table: render(spec, rows),
        verdicts: spec.goals.iter().map(|goal| goal.verdict(rows)).collect(),
        samples: samples(rows),
    }
}

fn render(spec: &Spec, rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "CPU us/request",
        "user",
        "system",
        "total x",
        "user x",
        "waited %",
    ]);
    let peer = find(rows, spec.peer);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 2);
        let ratio = |metric: Metric| {
            cell(
                peer.and_then(|peer| row.ratio(peer, |sample| metric.of(sample))),
                2,
            )
        };
        let waited = row.spread(|sample| sample.waited * PERCENT);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.total_us),
            spread(|sample| sample.user_us),
            spread(|sample| sample.system_us),
            ratio(Metric::Total),
            ratio(Metric::User),
            cell(waited, 0),
        ]);
    }
    out.to_string()
}

impl Goal {
    fn verdict(&self, rows: &[Row<Sample>]) -> Verdict {
        let kind = match self.metric {
            Metric::Total => "total",
            Metric::User => "user",
        };
        let measured = find(rows, self.subject)
            .zip(find(rows, self.versus))
            .and_then(|(subject, versus)| subject.ratio(versus, |sample| self.metric.of(sample)));
        let what = format!("{} {kind} CPU / {}", self.subject, self.versus);
        Verdict::at_most(
            what,
            measured.map(|spread| spread.median),
            self.at_most,
            " x",
        )
    }
}
