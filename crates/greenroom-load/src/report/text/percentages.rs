//! The table that closes ab's report.

use std::io::{self, Write};

use crate::report::quantity::{at_rank, rounded_milliseconds};
use crate::run::StreamMeasurement;

/// The percentages below 100 that ab prints.
const PERCENTAGES: [u64; 8] = [50, 66, 75, 80, 90, 95, 98, 99];

pub(super) fn write(out: &mut dyn Write, stream: &StreamMeasurement) -> io::Result<()> {
    let latency = stream.tally.latency();
    if stream.tally.responses() == 0 || latency.count() < 2 {
        return Ok(());
    }
    writeln!(
        out,
        "\nPercentage of the requests served within a certain time (ms)"
    )?;
    for percentage in PERCENTAGES {
        let time = at_rank(&latency, latency.count() * percentage / 100);
        writeln!(out, "  {percentage}%  {:>5}", rounded_milliseconds(time))?;
    }
    let longest = rounded_milliseconds(latency.max());
    writeln!(out, " 100%  {longest:>5} (longest request)")
}
