//! Pictures of what was measured, as SVG, and the whole report as one HTML page.
//!
//! A [`Series`] is one curve's worth of measurement: a stream of a run, or one of several servers
//! that are compared, with all its rounds. Every figure takes any number of them and draws them
//! over each other. Figures are printed on white and need nothing from outside: no fonts, no style
//! sheet, no script.

mod against_rate;
mod against_time;
mod axis;
mod canvas;
mod drawing;
mod legend;
mod look;
mod overlay;
mod page;
mod panel;
mod percentiles;
mod series;
mod sweep;
mod text;

pub use page::{PageError, html};
pub use series::{AtRate, Latency, Moment, PercentilePoint, Series};
pub use sweep::{Sweep, sweep};

use panel::Panel;

/// Draws the response time against the request rate that was asked for: the median and the 99th
/// percentile of each series, in milliseconds.
///
/// A ramp gives a curve, a constant rate one mark, a closed loop nothing, for it asks for no rate.
#[must_use]
pub fn response_time_against_rate(series: &[Series]) -> String {
    draw(series, &against_rate::panels(series))
}

/// Draws the response time against the request rate under a title of its own.
#[must_use]
pub fn response_time_against_rate_titled(title: &str, series: &[Series]) -> String {
    let mut panels = against_rate::panels(series);
    panels[0].title = title.to_owned().into();
    draw(series, &panels)
}

/// Draws response times, and below them rates and failures, against the time since the run began,
/// in seconds.
///
/// One series is shown with p50, p90, p99 and maximum; several with p50 and p99 each.
#[must_use]
pub fn against_time(series: &[Series]) -> String {
    draw(series, &against_time::panels(series))
}

/// Draws the response time by percentile, in milliseconds, on a scale that gives each further nine
/// the same width.
///
/// One series is shown with its service time beside the latency; of several there is the latency
/// only.
#[must_use]
pub fn percentile_curve(series: &[Series]) -> String {
    draw(series, &percentiles::panels(series))
}

/// Draws all figures that apply, below each other: response time against rate only where the rate
/// that was asked for varies.
#[must_use]
pub fn svg(series: &[Series]) -> String {
    let mut panels = Vec::new();
    if against_rate::applies(series) {
        panels.extend(against_rate::panels(series));
    }
    panels.extend(against_time::panels(series));
    panels.extend(percentiles::panels(series));
    draw(series, &panels)
}

fn draw(series: &[Series], panels: &[Panel]) -> String {
    let names: Vec<_> = series.iter().map(|one| one.name.as_str()).collect();
    panel::draw(panels, &names)
}

#[cfg(test)]
mod examples;
#[cfg(test)]
mod tests;
