//! The table and the verdicts of the samples.

use bench_kit::rounds::{Row, find, samples};
use bench_kit::{Report, Verdict, cell, table};

use super::{Goal, Metric, Sample, Spec};
use crate::cases::{PERCENT, add_missing};
use crate::contestant::LineUp;
use crate::peer::Peer;

const US: Peer = Peer::Greenroom;

pub(super) fn tell(spec: &Spec, rows: &[Row<Sample>], line_up: &LineUp, rounds: usize) -> Report {
    let mut notes = vec![
        format!(
            "medians of {rounds} rounds (least–most), a fresh server each; x: within the round; \
             load by greenroom bench"
        ),
        "CPU: of all processes of the server, over the requests that got their responses; \
         first: of it, the process that was started (Greenroom's front, a prefork \
         server's master); longest: also of those whose connection had to wait until \
         the load ended"
            .to_owned(),
    ];
    notes.extend(line_up.notes.iter().cloned());
    Report {
        case: spec.case,
        title: spec.title.to_owned(),
        notes,
        table: render(rows, line_up),
        verdicts: spec.goals.iter().map(|goal| goal.verdict(rows)).collect(),
        samples: samples(rows),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn render(rows: &[Row<Sample>], line_up: &LineUp) -> String {
    let mut out = table([
        "server",
        "req/s",
        "CPU us/request",
        "first us",
        "CPU x Twiggy",
        "CPU x Feersum, keep-alive",
        "p99 ms",
        "longest ms",
        "failed",
        "waited %",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        let ratio = |peer: Peer| {
            let peer = find(rows, peer.name());
            cell(
                peer.and_then(|peer| row.ratio(peer, |sample| sample.cpu_us)),
                2,
            )
        };
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.per_second, 0),
            spread(|sample| sample.cpu_us, 1),
            spread(|sample| sample.first_us, 1),
            ratio(Peer::Twiggy),
            ratio(Peer::FeersumKeepAlive),
            spread(|sample| sample.p99_ms, 1),
            spread(|sample| sample.longest_ms, 0),
            spread(|sample| sample.failed as f64, 0),
            spread(|sample| sample.waited * PERCENT, 0),
        ]);
    }
    add_missing(&mut out, line_up);
    out.to_string()
}

impl Goal {
    fn verdict(&self, rows: &[Row<Sample>]) -> Verdict {
        let ratio = find(rows, US.name())
            .zip(find(rows, self.versus.name()))
            .and_then(|(ours, peer)| ours.ratio(peer, |sample| self.metric.of(sample)))
            .map(|spread| spread.median);
        let (ours, versus) = (US.name(), self.versus.name());
        match self.metric {
            Metric::Rate => {
                let what = format!("{ours} req/s / {versus}");
                Verdict::at_least(what, ratio, self.multiple, " x")
            }
            Metric::Cpu => {
                let what = format!("{ours} CPU / {versus}");
                Verdict::at_most(what, ratio, self.multiple, " x")
            }
        }
    }
}
