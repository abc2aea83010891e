//! The parser of gates on the command line.

use std::str::FromStr;

use super::{Amount, Comparison, Condition, Counter, Gate, Statistic};

/// The allowed forms of a bound on a count.
const AMOUNTS: &str = "a number such as 10, or a part such as 0.1%";

/// An error in the text of a gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {reason}")]
pub struct GateError {
    text: String,
    reason: String,
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        parse(text).map_err(|reason| GateError {
            text: text.to_owned(),
            reason,
        })
    }
}

fn parse(text: &str) -> Result<Gate, String> {
    let at = text.find(['<', '>']).ok_or(
        "a gate is a metric, one of > >= < <=, and a bound, such as p99>50ms or errors>0.1%",
    )?;
    let (metric, rest) = text.split_at(at);
    let (comparison, bound) = comparison(rest);
    Ok(Gate {
        condition: condition(metric.trim(), bound.trim())?,
        comparison,
    })
}

/// Splits a comparison off a text that begins with `<` or `>`.
fn comparison(text: &str) -> (Comparison, &str) {
    if let Some(rest) = text.strip_prefix(">=") {
        (Comparison::AtLeast, rest)
    } else if let Some(rest) = text.strip_prefix("<=") {
        (Comparison::AtMost, rest)
    } else if let Some(rest) = text.strip_prefix('>') {
        (Comparison::Above, rest)
    } else {
        (Comparison::Below, &text[1..])
    }
}

fn condition(metric: &str, bound: &str) -> Result<Condition, String> {
    let latency = |statistic| {
        let time = humantime::parse_duration(bound).map_err(|error| {
            format!("{metric} is compared with a time such as 50ms or 1.5s, not {bound:?}: {error}")
        })?;
        Ok(Condition::Latency(statistic, time))
    };
    let count = |counter| {
        let amount = amount(bound);
        let amount =
            amount.ok_or_else(|| format!("{metric} is compared with {AMOUNTS}, not {bound:?}"))?;
        Ok(Condition::Count(counter, amount))
    };
    match metric {
        "mean" => latency(Statistic::Mean),
        "min" => latency(Statistic::Min),
        "max" => latency(Statistic::Max),
        "errors" => count(Counter::Errors),
        "non2xx" => count(Counter::Non2xx),
        "late" => count(Counter::Late),
        "missed" => count(Counter::Missed),
        "rate" => rate(bound),
        _ => latency(Statistic::Percentile(percentile(metric)?)),
    }
}

fn percentile(metric: &str) -> Result<f64, String> {
    let digits = metric.strip_prefix('p');
    digits
        .and_then(decimal)
        .filter(|percentile| *percentile <= 100.0)
        .ok_or_else(|| {
            format!(
                "{metric:?} is no metric; allowed are p50, p99, p99.9 and other percentiles, \
                mean, min, max, errors, non2xx, late, missed and rate"
            )
        })
}

fn amount(bound: &str) -> Option<Amount> {
    match bound.strip_suffix('%') {
        Some(percent) => decimal(percent.trim())
            .filter(|percent| *percent <= 100.0)
            .map(Amount::Percent),
        None => bound.parse().ok().map(Amount::Absolute),
    }
}

fn rate(bound: &str) -> Result<Condition, String> {
    decimal(bound).map(Condition::Rate).ok_or_else(|| {
        format!(
            "rate is compared with a number of responses per second such as 1000, not {bound:?}"
        )
    })
}

/// Parses digits, and perhaps a point with more; no sign, no exponent, no infinity.
fn decimal(text: &str) -> Option<f64> {
    let is_plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    text.bytes().all(is_plain).then(|| text.parse().ok())?
}
