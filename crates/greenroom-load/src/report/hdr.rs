//! An `HdrHistogram` log, for the plotters and viewers of that format.

use std::io::{self, Write};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use crate::record::Point;
use crate::run::Measurement;

/// Writes a histogram of latencies in nanoseconds for each point of each stream, tagged with the
/// stream's name, in the order in which they began. A comma or white space in a name becomes `_`,
/// as the format demands. The column of maxima is in milliseconds, as its Java tools have it.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, measurement: &Measurement) -> io::Result<()> {
    let mut out = out;
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Latency in nanoseconds, from the intended time; a tag for each stream]")
        .with_start_time(measurement.started)
        .with_base_time(measurement.started)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut out, &mut serializer)?;
    for (name, point) in points(measurement) {
        log.write_histogram(
            point.latency().histogram(),
            point.begin,
            point.length,
            Tag::new(&name),
        )
        .map_err(|error| match error {
            IntervalLogWriterError::IoError(error) => error,
            IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
        })?;
    }
    Ok(())
}

fn points(measurement: &Measurement) -> Vec<(String, &Point)> {
    let mut points: Vec<(String, &Point)> = Vec::new();
    for stream in &measurement.streams {
        let name = tag(&stream.plan.name);
        let of_stream = stream.timeline.points().iter();
        points.extend(of_stream.map(|point| (name.clone(), point)));
    }
    points.sort_by_key(|(_, point)| point.begin);
    points
}

fn tag(name: &str) -> String {
    let is_refused = |character: char| character == ',' || character.is_whitespace();
    name.replace(is_refused, "_")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::report::sample;

    #[test]
    fn a_log_reads_back() {
        let second = Duration::from_secs(1);
        let mut one = sample::stream("http://host/one");
        one.plan.name = "slow, then fast".into();
        sample::response(&mut one, 200, 900, 1000);
        sample::point(&mut one, Duration::ZERO, second);
        sample::point(&mut one, second, second);
        let mut two = sample::stream("http://host/two");
        sample::response(&mut two, 200, 1, 2);
        sample::response(&mut two, 200, 1, 2);
        sample::point(&mut two, Duration::ZERO, second);
        let run = sample::measurement(vec![one, two]);

        let log = sample::text_of(|out| write(out, &run));
        let mut seen = Vec::new();
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            match entry.expect("the log is well formed") {
                LogEntry::Interval(interval) => {
                    let bytes = STANDARD
                        .decode(interval.encoded_histogram())
                        .expect("base64");
                    let times: Histogram<u64> = Deserializer::new()
                        .deserialize(&mut &bytes[..])
                        .expect("a histogram");
                    let tag = interval.tag().map(|tag| tag.as_str().to_owned());
                    seen.push((tag.expect("a tag"), interval.start_timestamp(), times));
                }
                LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
                    assert_eq!(time.as_secs(), sample::STARTED_SECONDS);
                }
            }
        }
        let heads: Vec<_> = seen
            .iter()
            .map(|(tag, begin, _)| (tag.as_str(), begin.as_secs()))
            .collect();
        assert_eq!(
            heads,
            [
                ("slow__then_fast", 0),
                ("http://host/two", 0),
                ("slow__then_fast", 1)
            ]
        );
        let max = |index: usize| seen[index].2.max();
        assert!(max(0).abs_diff(1_000_000_000) < 10_000_000, "{}", max(0));
        assert!(max(1).abs_diff(2_000_000) < 20_000, "{}", max(1));
        assert_eq!(seen[1].2.len(), 2);
    }
}
