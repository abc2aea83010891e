//! Scales: the positions of values, and the labelled ones among them.

use std::borrow::Cow;
use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::text::number;

/// The most steps of a linear scale.
const STEPS_MAX: u32 = 7;
/// The free share of an axis beyond the highest value, and on a logarithmic scale below the lowest.
const LINEAR_MARGIN: f64 = 0.02;
const LOG_MARGIN: f64 = 0.12;
/// The span in decades above which a scale is logarithmic.
const LINEAR_DECADES_MAX: f64 = 2.0;
/// The span in decades above which only the powers of ten are labelled.
const FINE_DECADES_MAX: f64 = 3.2;

/// An axis: its scale, its ticks, and its quantity.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// Quantity and unit.
    pub(super) label: Cow<'static, str>,
    is_log: bool,
    /// Bounds, in the scale's unit.
    low: f64,
    high: f64,
    /// Positions of the ticks on the scale, and their labels.
    ticks: Vec<(f64, String)>,
    fine: Vec<f64>,
}

impl Axis {
    /// Creates an axis from zero to a tick at or above all values.
    pub(super) fn linear(
        label: impl Into<Cow<'static, str>>,
        values: impl Iterator<Item = f64>,
    ) -> Self {
        let mut axis = Self::tight(label, values);
        let step = axis.ticks.get(1).map_or(1.0, |(at, _)| *at);
        if axis.high * (1.0 + LINEAR_MARGIN) > axis.ticks.last().map_or(0.0, |(at, _)| *at) {
            let next = float(axis.ticks.len()) * step;
            axis.ticks.push((next, written(next)));
            axis.high = next;
        }
        axis
    }

    /// Creates an axis from zero to just the highest value.
    pub(super) fn tight(
        label: impl Into<Cow<'static, str>>,
        values: impl Iterator<Item = f64>,
    ) -> Self {
        let highest = values.fold(0.0, f64::max);
        let high = if highest > 0.0 { highest } else { 1.0 };
        let step = step(high);
        let ticks = (0..=STEPS_MAX)
            .map(|index| f64::from(index) * step)
            .take_while(|at| *at <= high * (1.0 + 1e-9))
            .map(|at| (at, written(at)))
            .collect();
        Self {
            label: label.into(),
            is_log: false,
            low: 0.0,
            high,
            ticks,
            fine: Vec::new(),
        }
    }

    /// Creates a linear axis, or a logarithmic one where the values, all above zero, span more than
    /// two decades.
    pub(super) fn fitting(
        label: impl Into<Cow<'static, str>>,
        values: impl Iterator<Item = f64> + Clone,
    ) -> Self {
        let lowest = values.clone().fold(f64::INFINITY, f64::min);
        let highest = values.clone().fold(0.0, f64::max);
        if lowest > 0.0 && highest / lowest > 10_f64.powf(LINEAR_DECADES_MAX) {
            Self::logarithmic(label, lowest, highest)
        } else {
            Self::linear(label, values)
        }
    }

    fn logarithmic(label: impl Into<Cow<'static, str>>, lowest: f64, highest: f64) -> Self {
        let lowest = lowest * (1.0 - LOG_MARGIN);
        let highest = highest * (1.0 + LOG_MARGIN);
        let numbers = || log_numbers(lowest, highest);
        let rounds = |(mantissa, _): &(u32, i32)| matches!(mantissa, 1 | 2 | 5);
        let places = numbers().filter(rounds).map(place);
        let low = places.clone().filter(|at| *at <= lowest.log10() + 1e-9);
        let low = low.fold(f64::NEG_INFINITY, f64::max);
        let high = places.filter(|at| *at >= highest.log10() - 1e-9);
        let high = high.fold(f64::INFINITY, f64::min);
        let is_fine = high - low < FINE_DECADES_MAX;
        let is_inside = |at: f64| at >= low - 1e-9 && at <= high + 1e-9;
        let ticks = numbers()
            .filter(|number| number.0 == 1 || is_fine && rounds(number))
            .map(|number| (place(number), written(10_f64.powf(place(number)))))
            .filter(|(at, _)| is_inside(*at));
        Self {
            label: label.into(),
            is_log: true,
            low,
            high,
            ticks: ticks.collect(),
            fine: numbers().map(place).filter(|at| is_inside(*at)).collect(),
        }
    }

    /// Creates an axis of percentiles up to so many nines.
    pub(super) fn percentiles(label: impl Into<Cow<'static, str>>, nines: f64) -> Self {
        let high = nines.max(1.0);
        let whole = (0_u32..)
            .map(f64::from)
            .take_while(|nines| *nines <= high + 1e-9);
        let ticks = whole.map(|nines| (nines, percentile(nines)));
        let median = (2_f64.log10(), "50".to_owned());
        let part = |nines: f64| [2.0_f64, 4.0].map(|part| nines + part.log10());
        let fine = (0_u32..)
            .map(f64::from)
            .take_while(|nines| *nines < high)
            .flat_map(part);
        Self {
            label: label.into(),
            is_log: false,
            low: 0.0,
            high,
            fine: fine.filter(|at| *at < high).collect(),
            ticks: ticks.chain([median]).collect(),
        }
    }

    /// Returns the position of a value on the scale.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.is_log { value.log10() } else { value }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "between two i32")]
    fn map(&self, place: &f64, (low, high): (i32, i32)) -> i32 {
        let part = ((place - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        (f64::from(low) + part * f64::from(high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            self.fine.clone()
        } else {
            self.ticks.iter().map(|(at, _)| *at).collect()
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    /// Formats the label of a tick.
    fn format_ext(&self, place: &f64) -> String {
        let tick = self.ticks.iter().find(|(at, _)| (at - place).abs() < 1e-9);
        tick.map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

fn float(count: usize) -> f64 {
    super::text::float(count as u64)
}

/// Formats a number with enough decimals for a nanosecond in milliseconds.
fn written(value: f64) -> String {
    number(value, 6)
}

/// Returns the round distance between ticks from zero to `high`.
fn step(high: f64) -> f64 {
    let rough = high / f64::from(STEPS_MAX);
    let decade = 10_f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
    factors
        .into_iter()
        .find(|step| *step >= rough * (1.0 - 1e-9))
        .unwrap_or(high)
}

/// Returns one-digit numbers, as digit and power of ten, from below `lowest` to above `highest`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the logarithms of times from 1 ns to an hour"
)]
fn log_numbers(lowest: f64, highest: f64) -> impl Iterator<Item = (u32, i32)> + Clone {
    let powers = lowest.log10().floor() as i32..=highest.log10().ceil() as i32;
    powers.flat_map(|power| (1..10).map(move |digit| (digit, power)))
}

fn place((digit, power): (u32, i32)) -> f64 {
    f64::from(digit).log10() + f64::from(power)
}

/// Formats a percentile: 0, 90, 99, 99.9 …
fn percentile(nines: f64) -> String {
    written(100.0 * (1.0 - 10_f64.powf(-nines)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn a_linear_scale_has_round_ticks_and_holds_all_values() {
        let axis = Axis::linear("", [3.0, 47.0].into_iter());
        assert_eq!(texts(&axis), ["0", "10", "20", "30", "40", "50"]);
        assert!((axis.high - 50.0).abs() < 1e-9);
        assert_eq!(
            texts(&Axis::linear("", [0.29].into_iter())),
            ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3"]
        );
    }

    #[test]
    fn two_decades_make_a_scale_logarithmic() {
        assert!(!Axis::fitting("", [1.0, 99.0].into_iter()).is_log);
        let axis = Axis::fitting("", [0.13, 870.0].into_iter());
        assert_eq!(texts(&axis), ["0.1", "1", "10", "100", "1,000"]);
        assert!((axis.low + 1.0).abs() < 1e-9 && (axis.high - 3.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_has_a_scale_too() {
        let axis = Axis::fitting("", std::iter::empty());
        assert!(axis.low < axis.high);
        assert!(texts(&axis).contains(&"1"));
    }

    #[test]
    fn each_nine_has_its_tick() {
        let axis = Axis::percentiles("", 4.3);
        assert_eq!(texts(&axis), ["0", "90", "99", "99.9", "99.99", "50"]);
    }
}
