//! Interleaved rounds: every contestant once in each, in alternating order.

use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};

use crate::stats::Spread;

/// Appended to the name of a contestant that runs a second time, to show the difference between
/// equals.
pub const AGAIN: &str = " (A/A)";

/// A program that is measured.
pub trait Contestant {
    /// Returns the name in the tables.
    fn name(&self) -> &str;
}

/// A contestant with its samples, one a round.
#[derive(Debug)]
pub struct Row<T> {
    /// The contestant's name.
    pub name: String,
    /// The samples, in the order of the rounds.
    pub samples: Vec<T>,
}

impl<T> Row<T> {
    /// Returns median, least and most of one value.
    pub fn spread(&self, value: impl Fn(&T) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().map(value))
    }

    /// Returns one value as a multiple of the peer's in the same round.
    pub fn ratio(&self, peer: &Self, value: impl Fn(&T) -> f64) -> Option<Spread> {
        self.paired(peer, value, |mine, other| {
            (other > 0.0).then_some(mine / other)
        })
    }

    /// Returns one value less the peer's in the same round.
    pub fn difference(&self, peer: &Self, value: impl Fn(&T) -> f64) -> Option<Spread> {
        self.paired(peer, value, |mine, other| Some(mine - other))
    }

    fn paired(
        &self,
        peer: &Self,
        value: impl Fn(&T) -> f64,
        combine: impl Fn(f64, f64) -> Option<f64>,
    ) -> Option<Spread> {
        let pairs = self.samples.iter().zip(&peer.samples);
        Spread::of(pairs.filter_map(|(mine, other)| combine(value(mine), value(other))))
    }
}

/// Runs `measure` for each contestant in each round; returns the samples of each contestant.
///
/// # Errors
/// The first of `measure`, with the contestant's name.
pub fn interleave<C: Contestant, T>(
    case: &str,
    rounds: usize,
    contestants: &[C],
    mut measure: impl FnMut(&C) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<Row<T>>> {
    let row = |contestant: &C| Row {
        name: contestant.name().to_owned(),
        samples: Vec::new(),
    };
    let mut rows: Vec<Row<T>> = contestants.iter().map(row).collect();
    for round in 0..rounds {
        for index in order(round, contestants.len()) {
            let row = &mut rows[index];
            eprintln!("{case}, round {} of {rounds}: {}", round + 1, row.name);
            let sample = measure(&contestants[index]).with_context(|| row.name.clone())?;
            row.samples.push(sample);
        }
    }
    Ok(rows)
}

/// Returns the order of a round: forwards, then backwards, so that drift hits each alike.
fn order(round: usize, count: usize) -> Vec<usize> {
    if round.is_multiple_of(2) {
        (0..count).collect()
    } else {
        (0..count).rev().collect()
    }
}

/// Returns the row of the contestant of this name, unless it was left out.
#[must_use]
pub fn find<'a, T>(rows: &'a [Row<T>], name: &str) -> Option<&'a Row<T>> {
    rows.iter().find(|row| row.name == name)
}

/// Returns every sample, by contestant.
#[must_use]
pub fn samples<T: Serialize>(rows: &[Row<T>]) -> Value {
    let by_name = rows
        .iter()
        .map(|row| (row.name.clone(), json!(row.samples)));
    Value::Object(by_name.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl Contestant for Named {
        fn name(&self) -> &str {
            self.0
        }
    }

    fn row(samples: &[f64]) -> Row<f64> {
        Row {
            name: String::new(),
            samples: samples.to_vec(),
        }
    }

    #[test]
    fn every_second_round_runs_backwards() {
        let mut seen = String::new();
        let contestants = [Named("a"), Named("b"), Named("c")];
        let rows = interleave("case", 2, &contestants, |contestant| {
            seen.push_str(contestant.0);
            Ok(seen.len())
        })
        .expect("nothing fails");
        assert_eq!(seen, "abccba");
        assert_eq!(rows[1].samples, [2, 5]);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let ratio = row(&[1.0, 4.0, 9.0]).ratio(&row(&[2.0, 4.0, 3.0]), |value| *value);
        assert_eq!(format!("{}", ratio.expect("samples")), "1.00 (0.50–3.00)");
    }

    #[test]
    fn a_difference_may_be_negative() {
        let difference = row(&[1.0, 4.0]).difference(&row(&[2.0, 4.0]), |value| *value);
        assert_eq!(
            format!("{:.1}", difference.expect("samples")),
            "-0.5 (-1.0–0.0)"
        );
    }
}
