use std::fmt::Write;

use super::super::history::{self, HOUR_MAX, RECENT_MAX, SERIES, Sample, Series};
use super::format::drawn;

/// The box in which a line is drawn; the page stretches it.
pub(in super::super) const WIDTH: u16 = 300;
pub(in super::super) const HEIGHT: u16 = 48;
/// The characters of a line in text, each the highest of as many samples.
const SPARKS: usize = 60;

/// A value over time.
pub(in super::super) struct Chart {
    pub(in super::super) title: &'static str,
    pub(in super::super) help: &'static str,
    pub(in super::super) now: String,
    pub(in super::super) spans: [Span; 2],
    /// The last minutes in characters.
    pub(in super::super) sparks: String,
}

/// A line over some time that ends now.
pub(in super::super) struct Span {
    pub(in super::super) name: &'static str,
    pub(in super::super) highest: String,
    /// The line as an SVG path; empty before the second sample.
    pub(in super::super) line: String,
    /// The same, closed along the bottom.
    pub(in super::super) area: String,
}

pub(super) fn charts(history: &history::Shown) -> Vec<Chart> {
    let charts = SERIES.iter().enumerate();
    let charts = charts.map(|(index, series)| {
        let values = |samples: &[Sample]| samples.iter().map(|all| all[index]).collect::<Vec<_>>();
        let (recent, hour) = (values(&history.recent), values(&history.hour));
        Chart {
            title: series.title,
            help: series.help,
            now: with_unit(recent.last().copied().unwrap_or_default(), series),
            sparks: sparks(&recent),
            spans: [
                Span::new("5 minutes", &recent, RECENT_MAX, series),
                Span::new("1 hour", &hour, HOUR_MAX, series),
            ],
        }
    });
    charts.collect()
}

impl Span {
    fn new(name: &'static str, values: &[f32], capacity: usize, series: &Series) -> Self {
        let highest = values.iter().copied().fold(0.0, f32::max);
        // So that next to nothing does not look like much.
        let line = line(values, capacity, highest.max(1.0));
        let first = values.len().saturating_sub(1);
        let area = match &*line {
            "" => String::new(),
            line => format!("{line}V{HEIGHT}H{:.1}Z", x(first, capacity)),
        };
        Self {
            name,
            highest: with_unit(highest, series),
            line,
            area,
        }
    }
}

fn with_unit(value: f32, series: &Series) -> String {
    match series.unit {
        "" => drawn(value),
        unit => format!("{}\u{a0}{unit}", drawn(value)),
    }
}

/// The newest value is at the right; values that are not there yet leave the left empty.
fn line(values: &[f32], capacity: usize, highest: f32) -> String {
    let mut path = String::new();
    if values.len() < 2 {
        return path;
    }
    // One pixel of it stays free, so that the line is seen as a whole.
    let height = f32::from(HEIGHT) - 2.0;
    let scale = if highest > 0.0 { height / highest } else { 0.0 };
    for (index, value) in values.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let x = x(values.len() - 1 - index, capacity);
        let y = f32::from(HEIGHT) - 1.0 - value * scale;
        // Writing to a string cannot fail.
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path
}

#[expect(clippy::cast_precision_loss, reason = "it is drawn")]
fn x(steps_ago: usize, capacity: usize) -> f32 {
    let width = f32::from(WIDTH);
    width - steps_ago as f32 * width / (capacity - 1) as f32
}

fn sparks(values: &[f32]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.iter().copied().fold(0.0, f32::max);
    let chunk = RECENT_MAX / SPARKS;
    let sparks = values.rchunks(chunk).map(|values| {
        let value = values.iter().copied().fold(0.0, f32::max);
        let levels = LEVELS.iter().enumerate().rev();
        #[expect(clippy::cast_precision_loss, reason = "there are eight")]
        let mut below = levels.filter(|(level, _)| value * 7.99 >= highest * *level as f32);
        if highest > 0.0 {
            below.next().map_or(LEVELS[0], |(_, level)| *level)
        } else {
            LEVELS[0]
        }
    });
    let mut sparks: Vec<char> = sparks.collect();
    sparks.reverse();
    sparks.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_value_is_at_the_right_and_the_highest_at_the_top() {
        let line = line(&[0.0, 4.0], 3, 4.0);
        assert_eq!(line, "M150.0 47.0L300.0 1.0");
        assert_eq!(super::line(&[1.0], 3, 1.0), "");
        assert_eq!(super::line(&[0.0, 0.0], 2, 0.0), "M0.0 47.0L300.0 47.0");
    }

    #[test]
    fn sparks_show_the_highest_of_five_samples() {
        let mut values = vec![0.0; 10];
        values[9] = 8.0;
        values[3] = 4.0;
        assert_eq!(sparks(&values), "▄█");
        assert_eq!(sparks(&[0.0; 7]), "▁▁");
        assert_eq!(sparks(&[]), "");
    }
}
