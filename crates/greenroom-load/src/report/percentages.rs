//! ab's `-e`: the time within which each percentage of the first stream's requests was served.

use std::io::{self, Write};

use super::quantity::{at_rank, milliseconds};
use crate::record::Times;
use crate::run::Measurement;

/// Writes a header and the rows 0 to 100, in milliseconds with three decimals; only the header when
/// no request got a response.
///
/// # Errors
/// Those of `out`.
///
/// # Panics
/// If the measurement has no stream.
pub fn write(out: &mut dyn Write, measurement: &Measurement) -> io::Result<()> {
    writeln!(out, "Percentage served,Time in ms")?;
    let tally = &measurement.streams[0].tally;
    if tally.responses() == 0 {
        return Ok(());
    }
    let latency = tally.latency();
    for percentage in 0..=100 {
        let time = match percentage {
            0 => latency.min(),
            100 => latency.max(),
            _ => at_rank(&latency, rank(&latency, percentage)),
        };
        writeln!(out, "{percentage},{:.3}", milliseconds(time))?;
    }
    Ok(())
}

/// Returns the rank that ab takes: here it rounds, where its printed table truncates.
fn rank(times: &Times, percentage: u64) -> u64 {
    (times.count() * percentage + 50) / 100
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::report::sample;

    /// The output of ab 2.3 for 20 requests. Every fifth row has the next one's time.
    const AB: &str = include_str!("text/golden/closed.csv");

    fn rows(text: &str) -> Vec<(u64, f64)> {
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("Percentage served,Time in ms"));
        let row = |line: &str| {
            let (percentage, time) = line.split_once(',')?;
            assert_eq!(time.split_once('.')?.1.len(), 3, "{line}");
            Some((percentage.parse().ok()?, time.parse().ok()?))
        };
        lines.map(|line| row(line).expect(line)).collect()
    }

    #[test]
    fn rows_are_those_of_ab() {
        let ab = rows(AB);
        let mut stream = sample::stream("http://host/");
        for (_, milliseconds) in ab.iter().step_by(5).take(20) {
            let time = Duration::from_secs_f64(milliseconds / 1000.0);
            let nanoseconds = time.as_nanos().try_into().expect("less than a second");
            stream.tally.good.record(nanoseconds);
        }
        let run = sample::measurement(vec![stream]);
        let ours = rows(&sample::text_of(|out| write(out, &run)));
        assert_eq!(ours.len(), 101);
        for (ours, ab) in ours.into_iter().zip(ab) {
            // In these two rows ab has read behind the end of its times.
            let expected = if matches!(ab.0, 98 | 99) {
                402.507
            } else {
                ab.1
            };
            assert_eq!(ours.0, ab.0);
            assert!((ours.1 / expected - 1.0).abs() < 0.002, "{ours:?} {ab:?}");
        }
    }

    #[test]
    fn a_single_request_has_all_percentages() {
        let mut stream = sample::stream("http://host/");
        sample::response(&mut stream, 200, 2, 2);
        let text = sample::text_of(|out| write(out, &sample::measurement(vec![stream])));
        assert_eq!(text.lines().count(), 102);
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.contains(",2.00") || line.contains(",1.99"))
        );
    }

    #[test]
    fn no_responses_leave_the_header() {
        let run = sample::measurement(vec![sample::stream("http://host/")]);
        assert_eq!(sample::text_of(|out| write(out, &run)).lines().count(), 1);
    }
}
