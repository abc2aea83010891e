//! Lines of any quantity against any other.

use super::axis::Axis;
use super::legend::{Entry, Legend};
use super::look::{Dash, look};
use super::panel::{Curve, Panel, draw};

/// A picture of lines: its words, and the points of each line.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Its title.
    pub title: String,
    /// Quantity and unit of the horizontal axis.
    pub x: String,
    /// Quantity and unit of the vertical axis.
    pub y: String,
    /// Names of lines, and their points from left to right.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Draws lines. An axis whose values, all above zero, span more than two decades is logarithmic.
#[must_use]
pub fn sweep(sweep: &Sweep) -> String {
    let points = || sweep.lines.iter().flat_map(|(_, points)| points);
    let names: Vec<_> = sweep.lines.iter().map(|(name, _)| name.as_str()).collect();
    let entry = |(number, name): (usize, &&str)| Entry {
        colour: look(number).colour,
        dash: Some(Dash::Solid),
        shape: Some(look(number).shape),
        ..Entry::heading(name)
    };
    let curve = |(number, (name, points)): (usize, &(String, Vec<_>))| Curve {
        title: name.clone(),
        stretches: vec![points.clone()],
        colour: look(number).colour,
        dash: Some(Dash::Solid),
        marks: points.clone(),
        shape: look(number).shape,
    };
    let panel = Panel {
        title: sweep.title.clone().into(),
        x: Axis::fitting(sweep.x.clone(), points().map(|point| point.0)),
        y: Axis::fitting(sweep.y.clone(), points().map(|point| point.1)),
        curves: sweep.lines.iter().enumerate().map(curve).collect(),
        legend: Legend::new(vec![names.iter().enumerate().map(entry).collect()]),
    };
    draw(&[panel], &names)
}
