//! The progress line of a running run.

use super::quantity::{milliseconds, per_second};
use crate::run::Progress;

/// Formats one line, without a line's end, for an interval of a stream: its end, responses per
/// second, median and 99th percentile of the latency, and the number of requests that failed or
/// got 5xx. An interval without a response has no latency.
///
/// ```text
///    12.0 s     1000/s  p50 0.082 ms  p99 0.310 ms  0 errors
/// ```
#[must_use]
pub fn line(progress: &Progress<'_>) -> String {
    let latency = progress.interval.latency();
    let errors = super::gate::errors(progress.interval);
    let quantile = |part| {
        if latency.is_empty() {
            return "-".to_owned();
        }
        format!("{:.3} ms", milliseconds(latency.quantile(part)))
    };
    format!(
        "{:>7.1} s {:>8.0}/s  p50 {}  p99 {}  {errors} {}",
        progress.elapsed.as_secs_f64(),
        per_second(progress.interval.responses(), progress.length),
        quantile(0.5),
        quantile(0.99),
        if errors == 1 { "error" } else { "errors" },
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::{FailureKind, Tally};
    use crate::report::sample;

    fn line_of(interval: &Tally, elapsed: u64) -> String {
        line(&Progress {
            stream: 0,
            elapsed: Duration::from_secs(elapsed),
            length: Duration::from_millis(500),
            interval,
            sent: 501,
            ended: 501,
        })
    }

    #[test]
    fn an_interval_is_one_line() {
        let mut stream = sample::stream("http://host/");
        assert_eq!(
            line_of(&stream.tally, 0),
            "    0.0 s        0/s  p50 -  p99 -  0 errors"
        );
        for _ in 0..500 {
            sample::response(&mut stream, 200, 3, 4);
        }
        sample::failure(&mut stream, FailureKind::Reset, 1);
        let line = line_of(&stream.tally, 12);
        assert!(line.starts_with("   12.0 s     1000/s  p50 4.00"), "{line}");
        assert!(line.ends_with(" ms  1 error"), "{line}");
    }
}
