//! The report: tables and verdicts.

use bench_kit::rounds::{Row, find};
use bench_kit::{Verdict, cell, table};

use super::{AB_CONCURRENCY, AB_REQUESTS, COMPUTATIONS, MANY, Sample};
use crate::contestant::{AXUM_INLINE, OURS};

/// Of what axum takes for the same computations.
const LONGEST_MAX_OF_AXUM: f64 = 1.5;

pub(super) fn tables(rows: &[Row<Sample>]) -> String {
    let mut parts: Vec<_> = (0..MANY.len()).map(|index| many(rows, index)).collect();
    parts.push(busy(rows));
    parts.push(computing(rows));
    parts.join("\n\n")
}

fn many(rows: &[Row<Sample>], index: usize) -> String {
    let mut out = table([
        "server",
        "answered",
        "refused",
        "failed",
        "longest s",
        "all done after s",
    ]);
    for row in rows {
        let spread = |value: fn(&super::Many) -> f64, digits| {
            cell(row.spread(|sample| value(&sample.many[index])), digits)
        };
        out.add_row([
            row.name.clone(),
            spread(|many| count(many.answered), 0),
            spread(|many| count(many.refused), 0),
            spread(|many| count(many.failed), 0),
            spread(super::Many::longest_seconds, 2),
            spread(|many| many.seconds, 2),
        ]);
    }
    format!("{} x /hello at once:\n\n{out}", MANY[index])
}

fn busy(rows: &[Row<Sample>]) -> String {
    let mut out = table(["server", "answered", "refused or failed", "longest ms"]);
    for row in rows {
        let spread = |value: fn(super::Busy) -> f64| {
            let samples = row.samples.iter().filter_map(|sample| sample.busy);
            cell(bench_kit::Spread::of(samples.map(value)), 0)
        };
        out.add_row([
            row.name.clone(),
            spread(|busy| count(busy.answered)),
            spread(|busy| count(busy.refused)),
            spread(|busy| busy.longest_ms.into()),
        ]);
    }
    format!("ab -n {AB_REQUESTS} -c {AB_CONCURRENCY} while the machine is busy:\n\n{out}")
}

fn computing(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "one alone ms",
        "answered",
        "refused",
        "failed",
        "all done after ms",
    ]);
    for row in rows {
        let spread = |value: fn(&super::Computing) -> f64, digits| {
            cell(row.spread(|sample| value(&sample.computing)), digits)
        };
        out.add_row([
            row.name.clone(),
            spread(|computing| computing.one.alone_ms, 1),
            spread(|computing| count(computing.wave.counts.answered), 0),
            spread(|computing| count(computing.wave.counts.refused), 0),
            spread(|computing| count(computing.wave.counts.failed), 0),
            spread(|computing| computing.wave.longest_ms, 0),
        ]);
    }
    format!("{COMPUTATIONS} computations at once:\n\n{out}")
}

pub(super) fn verdicts(rows: &[Row<Sample>]) -> Vec<Verdict> {
    let ours = find(rows, OURS);
    let most = |value: &dyn Fn(&Sample) -> Option<u64>| {
        let samples = ours?.samples.iter();
        samples.filter_map(value).max().map(count)
    };
    let none = |what: String, measured| {
        Verdict::at_most(
            format!("{OURS}: {what}: refused or failed"),
            measured,
            0.0,
            "",
        )
    };
    let mut verdicts = Vec::new();
    for (index, requests) in MANY.into_iter().enumerate() {
        let measured = most(&|sample| Some(sample.many[index].other_than_200()));
        verdicts.push(none(format!("{requests} at once"), measured));
    }
    let refused = most(&|sample| sample.busy.map(|busy| busy.refused));
    verdicts.push(none("ab on a busy machine".to_owned(), refused));
    let computing = most(&|sample| {
        let counts = sample.computing.wave.counts;
        Some(counts.refused + counts.failed)
    });
    verdicts.push(none(
        format!("{COMPUTATIONS} computations at once"),
        computing,
    ));
    verdicts.push(beside_axum(rows));
    verdicts
}

fn beside_axum(rows: &[Row<Sample>]) -> Verdict {
    let pairs = find(rows, OURS).zip(find(rows, AXUM_INLINE));
    let ratios = pairs.map(|(ours, axum)| {
        let pairs = ours.samples.iter().zip(&axum.samples);
        pairs.map(|(ours, axum)| ours.computing.all_done_ms() / axum.computing.wave.longest_ms)
    });
    Verdict::at_most(
        format!("{OURS}: {COMPUTATIONS} computations at once: all done after / {AXUM_INLINE}"),
        ratios.map(|ratios| ratios.fold(0.0, f64::max)),
        LONGEST_MAX_OF_AXUM,
        " x",
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn count(count: u64) -> f64 {
    count as f64
}
