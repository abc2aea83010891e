//! ab's table of connection times, and its warnings.

use std::io::{self, Write};
use std::time::Duration;

use crate::record::Times;
use crate::report::quantity::{at_rank, milliseconds, number, rounded_milliseconds};
use crate::run::StreamMeasurement;

/// A row of the table: whole milliseconds, and their deviation with its fraction.
struct Row {
    label: &'static str,
    /// Its name in ab's warnings.
    name: &'static str,
    min: u64,
    mean: u64,
    deviation: f64,
    median: u64,
    max: u64,
}

pub(super) fn write(
    out: &mut dyn Write,
    stream: &StreamMeasurement,
    without_deviation: bool,
) -> io::Result<()> {
    if stream.tally.responses() == 0 {
        return Ok(());
    }
    let rows = rows(stream);
    writeln!(out, "\nConnection Times (ms)")?;
    if without_deviation {
        short_table(out, &rows)
    } else {
        table(out, &rows)?;
        rows.iter().try_for_each(|row| warning(out, row))
    }
}

fn rows(stream: &StreamMeasurement) -> [Row; 4] {
    let tally = &stream.tally;
    // In ab, connecting takes no time where a connection is used again.
    let mut connect = tally.connect.clone();
    connect.record_many(0, tally.counts.reused);
    [
        Row::new("Connect:", "the initial connection time", &connect),
        Row::new("Processing:", "the processing time", &tally.processing),
        Row::new("Waiting:", "the waiting time", &tally.waiting),
        Row::new("Total:", "the total time", &tally.latency()),
    ]
}

impl Row {
    fn new(label: &'static str, name: &'static str, times: &Times) -> Self {
        Self {
            label,
            name,
            min: rounded_milliseconds(times.min()),
            mean: rounded_milliseconds(times.mean()),
            deviation: sample_deviation(times),
            median: rounded_milliseconds(median(times)),
            max: rounded_milliseconds(times.max()),
        }
    }
}

/// Returns ab's median: of an even number of times, the upper one of the two in the middle.
fn median(times: &Times) -> Duration {
    at_rank(times, times.count() / 2)
}

/// Returns the sample deviation in milliseconds, as ab does; the histogram's own is that of a whole
/// population.
fn sample_deviation(times: &Times) -> f64 {
    let count = number(times.count());
    if count < 2.0 {
        return 0.0;
    }
    milliseconds(times.standard_deviation()) * (count / (count - 1.0)).sqrt()
}

fn table(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    writeln!(out, "              min  mean[+/-sd] median   max")?;
    for row in rows {
        writeln!(
            out,
            "{:<12}{:>5} {:>4} {:>5.1} {:>6} {:>7}",
            row.label, row.min, row.mean, row.deviation, row.median, row.max
        )?;
    }
    Ok(())
}

fn short_table(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    writeln!(out, "              min   avg   max")?;
    for row in rows {
        writeln!(
            out,
            "{:<12}{:>5} {:>5}{:>5}",
            row.label, row.min, row.mean, row.max
        )?;
    }
    Ok(())
}

fn warning(out: &mut dyn Write, row: &Row) -> io::Result<()> {
    let apart = number(row.mean.abs_diff(row.median));
    let name = row.name;
    if apart > 2.0 * row.deviation {
        writeln!(
            out,
            "ERROR: The median and mean for {name} are more than twice the standard\n       \
            deviation apart. These results are NOT reliable."
        )
    } else if apart > row.deviation {
        writeln!(
            out,
            "WARNING: The median and mean for {name} are not within a normal deviation\n        \
            These results are probably not that reliable."
        )
    } else {
        Ok(())
    }
}
