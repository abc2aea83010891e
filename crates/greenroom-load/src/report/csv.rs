//! The time line as CSV: a row for each point of each stream.

use std::io::{self, Write};

use ::csv::Writer;
use serde::Serialize;

use super::quantity::milliseconds;
use crate::record::Point;
use crate::run::{Measurement, StreamMeasurement};

/// A row; its field names are the header.
#[derive(Serialize)]
struct Row<'a> {
    stream: &'a str,
    begin_seconds: f64,
    length_seconds: f64,
    due: u64,
    sent: u64,
    good: u64,
    bad: u64,
    failed: u64,
    asked_per_second: f64,
    answered_per_second: f64,
    /// `None` when no request of a latency ended.
    latency_p50_ms: Option<f64>,
    latency_p90_ms: Option<f64>,
    latency_p99_ms: Option<f64>,
    latency_max_ms: Option<f64>,
}

/// Writes a header, and the points of each stream after those of the previous one. Times count from
/// the run's begin. The latencies of a point without any are empty cells: a server that stands
/// still is no fast one.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, measurement: &Measurement) -> io::Result<()> {
    let mut writer = Writer::from_writer(out);
    for stream in &measurement.streams {
        for point in stream.timeline.points() {
            writer.serialize(Row::of(stream, point))?;
        }
    }
    writer.flush()
}

impl<'a> Row<'a> {
    fn of(stream: &'a StreamMeasurement, point: &Point) -> Self {
        let latency = point.latency();
        let some = |time| (!latency.is_empty()).then(|| milliseconds(time));
        let quantile = |part| some(latency.quantile(part));
        Self {
            stream: &stream.plan.name,
            begin_seconds: point.begin.as_secs_f64(),
            length_seconds: point.length.as_secs_f64(),
            due: point.due,
            sent: point.sent,
            good: point.good,
            bad: point.bad,
            failed: point.failed,
            asked_per_second: point.asked_rate(stream.plan.is_open_loop()),
            answered_per_second: point.response_rate(),
            latency_p50_ms: quantile(0.5),
            latency_p90_ms: quantile(0.9),
            latency_p99_ms: quantile(0.99),
            latency_max_ms: some(latency.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::FailureKind;
    use crate::report::sample;

    #[test]
    fn each_point_of_each_stream_has_a_row() {
        let second = Duration::from_secs(1);
        let mut one = sample::stream("http://host/one");
        one.plan.name = "one, with a comma".into();
        sample::response(&mut one, 200, 1, 2);
        sample::point(&mut one, Duration::ZERO, second);
        sample::point(&mut one, second, second / 2);
        let mut two = sample::stream("http://host/two");
        sample::response(&mut two, 503, 1, 4);
        sample::point(&mut two, Duration::ZERO, second);
        let run = sample::measurement(vec![one, two]);

        let text = sample::text_of(|out| write(out, &run));
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let header: Vec<_> = reader
            .headers()
            .expect("a header")
            .iter()
            .map(str::to_owned)
            .collect();
        assert_eq!(header[0..3], ["stream", "begin_seconds", "length_seconds"]);
        let rows: Vec<_> = reader
            .records()
            .map(|row| row.expect("a whole row"))
            .collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(&rows[0][0], "one, with a comma");
        let column = |name: &str| {
            header
                .iter()
                .position(|column| column == name)
                .expect("there is one")
        };
        assert_eq!(&rows[1][column("answered_per_second")], "2.0");
        assert_eq!(
            (&rows[2][column("good")], &rows[2][column("bad")]),
            ("0", "1")
        );
        let p99: f64 = rows[2][column("latency_p99_ms")].parse().expect("a number");
        assert!((p99 / 4.0 - 1.0).abs() < 0.02, "{p99}");
    }

    #[test]
    fn a_point_without_a_response_has_no_latency() {
        let mut stream = sample::stream("http://host/");
        sample::failure(&mut stream, FailureKind::Refused, 1);
        sample::point(&mut stream, Duration::ZERO, Duration::from_secs(1));
        let text = sample::text_of(|out| write(out, &sample::measurement(vec![stream])));
        assert_eq!(
            text.lines().nth(1),
            Some("http://host/,0.0,1.0,0,1,0,0,1,1.0,0.0,,,,")
        );
    }
}
