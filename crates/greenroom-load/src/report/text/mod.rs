//! The report on standard output: ab's, field by field, and between its last tables this program's
//! own sections.

mod ab;
mod connection_times;
mod cost;
mod latency;
mod open_loop;
mod outcome;
mod percentages;
mod section;
mod streams;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_golden;

use std::io::{self, Write};

use crate::run::Measurement;
use section::Section;

/// Parts of the report that are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextOptions {
    /// Omits standard deviations, medians and warnings about them (ab's `-S`). Default: they are
    /// printed.
    pub without_deviation: bool,
    /// Omits the closing table of percentages (ab's `-d`). Default: it is printed.
    pub without_percentages: bool,
}

/// Writes the report, from `Server Software:` on; the caller prints the lines before that.
///
/// The first stream is reported as by ab, character by character; ab's readers find every line they
/// look for. This program's own sections follow, each only where it has content, and the table of
/// percentages closes the report. As in ab, the rates are left out when no request got a response,
/// and that table when there are less than two requests.
///
/// # Errors
/// Those of `out`.
///
/// # Panics
/// If the measurement has no stream.
pub fn write(
    out: &mut dyn Write,
    measurement: &Measurement,
    options: &TextOptions,
) -> io::Result<()> {
    let first = &measurement.streams[0];
    ab::write(out, first)?;
    connection_times::write(out, first, options.without_deviation)?;
    for section in sections(measurement) {
        section.write(out)?;
    }
    if !options.without_percentages {
        percentages::write(out, first)?;
    }
    Ok(())
}

fn sections(measurement: &Measurement) -> impl Iterator<Item = Section> {
    let first = &measurement.streams[0];
    [
        outcome::ended_early(measurement),
        open_loop::missed(measurement),
        open_loop::section(measurement),
        latency::section(first),
        outcome::statuses(first),
        outcome::failures(first),
        streams::section(measurement),
        streams::failures(measurement),
        cost::section(measurement),
        cost::verdict(measurement),
    ]
    .into_iter()
    .flatten()
}
