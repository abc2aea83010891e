//! ab's `-g`: every request of the first stream, tab-separated for gnuplot.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::quantity::rounded_milliseconds;
use crate::record::RequestRecord;
use crate::run::Measurement;

/// The format of the C library's `ctime`, with a day of two digits.
const DATE: &str = "%a %b %d %H:%M:%S %Y";

/// Writes a header and a line for each request that was recorded, the fastest first.
///
/// The columns are those of ab: the intended begin, as a date in local time and in seconds since
/// 1970; time of connecting, `ttime` less that, time from the intended begin to the end (`ttime`),
/// and to the first byte, in whole milliseconds.
///
/// # Errors
/// Those of `out`.
///
/// # Panics
/// If the measurement has no stream.
pub fn write(out: &mut dyn Write, measurement: &Measurement) -> io::Result<()> {
    write_in(out, measurement, &TimeZone::system())
}

fn write_in(out: &mut dyn Write, measurement: &Measurement, zone: &TimeZone) -> io::Result<()> {
    let mut records: Vec<_> = measurement.streams[0].records.iter().collect();
    records.sort_by_key(|record| record.total);
    writeln!(out, "starttime\tseconds\tctime\tdtime\tttime\twait")?;
    for record in records {
        line(out, measurement.started, record, zone)?;
    }
    Ok(())
}

fn line(
    out: &mut dyn Write,
    started: SystemTime,
    record: &RequestRecord,
    zone: &TimeZone,
) -> io::Result<()> {
    let begin = started + Duration::from_nanos(record.intended);
    let seconds = begin
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let milliseconds = |nanoseconds| rounded_milliseconds(Duration::from_nanos(nanoseconds));
    writeln!(
        out,
        "{}\t{seconds}\t{}\t{}\t{}\t{}",
        date(begin, zone),
        milliseconds(record.connect),
        milliseconds(record.total.saturating_sub(record.connect)),
        milliseconds(record.total),
        milliseconds(record.waiting),
    )
}

fn date(time: SystemTime, zone: &TimeZone) -> String {
    // A clock outside of the years that have dates (up to 9999) shows the last second that has one.
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
    time.to_zoned(zone.clone()).strftime(DATE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    /// The output of ab 2.3, but for the times.
    const AB: &str = "starttime\tseconds\tctime\tdtime\tttime\twait\n\
        Sat Nov 21 13:13:42 2026\t1795266822\t";

    #[test]
    fn lines_are_those_of_ab_sorted_by_total_time() {
        let mut stream = sample::stream("http://host/");
        stream.records = vec![
            sample::record(999, 1, 402, 3),
            sample::record(1000, 2, 21, 4),
            sample::record(0, 0, 21, 5),
        ];
        stream.records[2].total -= 600_000;
        let text = sample::text_of(|out| {
            write_in(out, &sample::measurement(vec![stream]), &TimeZone::UTC)
        });
        assert_eq!(
            text,
            format!(
                "{AB}0\t20\t20\t5\n\
                Sat Nov 21 13:13:43 2026\t1795266823\t2\t19\t21\t4\n\
                Sat Nov 21 13:13:42 2026\t1795266822\t1\t401\t402\t3\n"
            )
        );
    }

    #[test]
    fn days_have_two_digits() {
        assert_eq!(date(UNIX_EPOCH, &TimeZone::UTC), "Thu Jan 01 00:00:00 1970");
    }
}
