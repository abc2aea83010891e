//! The report: tables and verdicts.

use std::fmt::Write as _;

use bench_kit::rounds::{Row, find};
use bench_kit::{Spread, Verdict, cell, table};

use super::{FACTORS, Flood, Sample, floods};
use crate::cases::Context;
use crate::contestant::{LAYER, OURS};

const HELLO_P99_MS_MAX: f64 = 5.0;
const HELLO_P99_MAX_OF_UNLOADED: f64 = 3.0;
/// In the order of the factors.
const GOODPUT_MIN: [f64; FACTORS.len()] = [0.95, 0.95, 0.90, 0.85];
const QUEUE_WAIT_MAX_MS: f64 = 500.0;
const SERVICE_TIMES: f64 = 3.0;
const REFUSED_P99_MS_MAX: f64 = 20.0;
const ALL_PERCENT: f64 = 100.0;

pub(super) fn notes(context: &Context, rounds: usize, left_out: Vec<String>) -> Vec<String> {
    let mut notes = vec![
        format!(
            "medians of {rounds} rounds (least–most); each flood against a fresh server, {} s and \
                1 s before in which the queue fills",
            context.seconds
        ),
        context.note(),
        "capacity: responses to fib(50000) per second in a closed loop over 4 connections; \
            unloaded: /hello at 100/s alone"
            .to_owned(),
        "goodput: fib responses with 200 within 2 s, as a share of the smaller of offered and \
            capacity; corrected: of the part of the capacity that the generator leaves, (cores - \
            generator's) / cores"
            .to_owned(),
        "latencies count from the intended time, what timed out with its 2 s; accepted are \
            responses with 200, refused those with 503; Retry-After: refused single requests in \
            the midst of it that were told when to come back; late: let in, and dropped when their \
            turn came too late, as the server itself counts"
            .to_owned(),
        "goals are judged by the medians; responses, resets and time-outs by the worst \
            round"
            .to_owned(),
    ];
    notes.extend(left_out);
    notes
}

pub(super) fn tables(rows: &[Row<Sample>]) -> String {
    let mut text = capacities(rows);
    for (index, factor) in FACTORS.iter().enumerate() {
        let rows: Vec<_> = rows.iter().map(|row| floods(row, index)).collect();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n\nOffered {factor} x capacity:\n\n{}",
            flooded(&rows)
        );
    }
    text
}

fn capacities(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "server",
        "capacity fib/s",
        "generator's cores",
        "one fib alone ms",
        "unloaded /hello p50 ms",
        "p99 ms",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.capacity.per_second, 0),
            spread(|sample| sample.capacity.generator_cores, 2),
            spread(|sample| sample.capacity.alone_ms, 1),
            spread(|sample| sample.capacity.hello_p50_ms, 2),
            spread(|sample| sample.capacity.hello_p99_ms, 2),
        ]);
    }
    out.to_string()
}

/// The first columns of every table of floods, behind the server's name.
pub(in crate::cases) const FLOOD_COLUMNS: [&str; 7] = [
    "server",
    "/hello answered %",
    "p50 ms",
    "p99 ms",
    "goodput",
    "corrected",
    "accepted p99 ms",
];

/// The cells of [`FLOOD_COLUMNS`].
pub(in crate::cases) fn flood_cells(row: &Row<Flood>) -> Vec<String> {
    let spread = |value: fn(&Flood) -> f64, digits| cell(row.spread(value), digits);
    vec![
        row.name.clone(),
        spread(|flood| flood.hello_answered_percent, 1),
        spread(|flood| flood.hello_p50_ms, 2),
        spread(|flood| flood.hello_p99_ms, 2),
        spread(|flood| flood.goodput, 2),
        spread(|flood| flood.goodput_corrected, 2),
        spread(|flood| flood.accepted_p99_ms, 0),
    ]
}

fn flooded(rows: &[Row<Flood>]) -> String {
    let others = [
        "refused %",
        "p99 ms",
        "of it late %",
        "Retry-After",
        "resets",
        "time-outs",
        "generator's cores",
    ];
    let mut out = table(FLOOD_COLUMNS.into_iter().chain(others));
    for row in rows {
        let spread = |value: fn(&Flood) -> f64, digits| cell(row.spread(value), digits);
        let others = [
            spread(|flood| flood.refused_percent, 1),
            cell(refused_p99_ms(row), 1),
            cell(late_percent(row), 1),
            retry_after_cell(row),
            row.samples
                .iter()
                .map(|flood| flood.resets)
                .sum::<u64>()
                .to_string(),
            row.samples
                .iter()
                .map(|flood| flood.timeouts)
                .sum::<u64>()
                .to_string(),
            spread(|flood| flood.generator_cores, 2),
        ];
        out.add_row(flood_cells(row).into_iter().chain(others));
    }
    out.to_string()
}

fn retry_after_cell(row: &Row<Flood>) -> String {
    let sum = |count: fn(&Flood) -> u32| row.samples.iter().map(count).sum::<u32>();
    match sum(|flood| flood.probes.refused) {
        0 => "-".to_owned(),
        refused => format!(
            "{} of {refused}",
            sum(|flood| flood.probes.with_retry_after)
        ),
    }
}

/// Describes the rejected requests that were dropped from the queue because their turn came too
/// late, if the server reports them.
fn late_percent(row: &Row<Flood>) -> Option<Spread> {
    let of_refused = |flood: &Flood| Some(count(flood.late?) / count(flood.refused.max(1)));
    Spread::of(
        row.samples
            .iter()
            .filter_map(of_refused)
            .map(|share| share * ALL_PERCENT),
    )
}

/// Of the rounds in which any were.
fn refused_p99_ms(row: &Row<Flood>) -> Option<Spread> {
    let refusing = row.samples.iter().filter(|flood| flood.refused > 0);
    Spread::of(refusing.map(|flood| flood.refused_p99_ms))
}

pub(super) fn verdicts(rows: &[Row<Sample>]) -> Vec<Verdict> {
    let ours = [OURS, LAYER]
        .into_iter()
        .filter_map(|name| find(rows, name));
    ours.flat_map(|row| (0..FACTORS.len()).flat_map(|index| of_factor(row, index)))
        .collect()
}

fn of_factor(row: &Row<Sample>, index: usize) -> Vec<Verdict> {
    let of = floods(row, index);
    let what = |what: &str| format!("{}, {} x: {what}", row.name, FACTORS[index]);
    let median = |value: fn(&Flood) -> f64| of.spread(value).map(|spread| spread.median);
    let worst = |value: fn(&Flood) -> u64| of.samples.iter().map(value).max();
    let unloaded = of_capacity(row, |sample| sample.capacity.hello_p99_ms);
    let alone = of_capacity(row, |sample| sample.capacity.alone_ms);
    let hello_p99 = median(|flood| flood.hello_p99_ms);
    let answered = of.spread(|flood| flood.hello_answered_percent);
    let mut verdicts = vec![
        Verdict::at_least(
            what("/hello answered"),
            answered.map(|spread| spread.min),
            ALL_PERCENT,
            " %",
        ),
        Verdict::at_most(what("/hello p99"), hello_p99, HELLO_P99_MS_MAX, " ms"),
        Verdict::at_most(
            what("/hello p99 / unloaded"),
            hello_p99.map(|p99| p99 / unloaded),
            HELLO_P99_MAX_OF_UNLOADED,
            " x",
        ),
        Verdict::at_least(
            what("fib goodput, corrected"),
            median(|flood| flood.goodput_corrected),
            GOODPUT_MIN[index],
            "",
        ),
        Verdict::at_most(
            what("accepted p99"),
            median(|flood| flood.accepted_p99_ms),
            (QUEUE_WAIT_MAX_MS + SERVICE_TIMES * alone).round(),
            " ms",
        ),
        Verdict::at_most(
            what("resets and time-outs"),
            worst(|flood| flood.resets + flood.timeouts).map(count),
            0.0,
            "",
        ),
    ];
    if let Some(p99) = refused_p99_ms(&of) {
        let refused = what("refused p99");
        verdicts.push(Verdict::at_most(
            refused,
            Some(p99.median),
            REFUSED_P99_MS_MAX,
            " ms",
        ));
    }
    verdicts.extend(retry_after(&of, what("refused with Retry-After")));
    verdicts
}

fn retry_after(row: &Row<Flood>, what: String) -> Option<Verdict> {
    let sum = |count: fn(&Flood) -> u32| row.samples.iter().map(count).sum::<u32>();
    let refused = sum(|flood| flood.probes.refused);
    let share = f64::from(sum(|flood| flood.probes.with_retry_after)) / f64::from(refused.max(1));
    (refused > 0).then(|| Verdict::at_least(what, Some(share * ALL_PERCENT), ALL_PERCENT, " %"))
}

fn of_capacity(row: &Row<Sample>, value: fn(&Sample) -> f64) -> f64 {
    row.spread(value).map_or(f64::NAN, |spread| spread.median)
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn count(count: u64) -> f64 {
    count as f64
}
