//! The open loop's schedule against the requests that were sent.

use std::time::Duration;

use super::section::Section;
use crate::plan::{Pace, Phase, Schedule};
use crate::report::quantity::{milliseconds, per_second, percent, share};
use crate::run::Measurement;

/// Returns a warning about the streams that missed their rate.
pub(super) fn missed(measurement: &Measurement) -> Option<Section> {
    let streams = measurement.streams.iter();
    let lines = streams
        .filter(|stream| stream.missed_its_rate())
        .map(|stream| {
            let counts = &stream.tally.counts;
            format!(
                "{}: {} of the {} requests that were due were never sent ({})",
                stream.plan.name,
                counts.due.saturating_sub(counts.sent),
                counts.due,
                percent(stream.missed()),
            )
        })
        .collect();
    Section::new("*** THE ASKED RATE WAS MISSED ***", lines)
}

/// Compares the first stream with its schedule.
pub(super) fn section(measurement: &Measurement) -> Option<Section> {
    let stream = &measurement.streams[0];
    let Pace::Open(schedule) = &stream.plan.pace else {
        return None;
    };
    let counts = &stream.tally.counts;
    let lasted = if measurement.interrupted || measurement.gave_up {
        stream.elapsed.min(schedule.duration())
    } else {
        schedule.duration()
    };
    let never = counts.due.saturating_sub(counts.sent);
    let lines = vec![
        format!("Asked:        {}", asked(schedule)),
        format!(
            "Due:          {} requests, {:.2} per second",
            counts.due,
            per_second(counts.due, lasted)
        ),
        format!(
            "Sent:         {} requests, {:.2} per second",
            counts.sent,
            per_second(counts.sent, lasted)
        ),
        format!(
            "Sent late:    {} by more than 1 ms ({}): {} for want of a free connection, {} \
            because this program was late",
            counts.late(),
            percent(share(counts.late(), counts.sent)),
            counts.late_for_connection,
            counts.late_by_generator,
        ),
        format!(
            "Never sent:   {never} ({})",
            percent(share(never, counts.due))
        ),
        format!(
            "Own delay:    p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
            milliseconds(stream.tally.lag.quantile(0.5)),
            milliseconds(stream.tally.lag.quantile(0.99)),
            milliseconds(stream.tally.lag.max()),
        ),
    ];
    Section::new("Open loop", lines)
}

fn asked(schedule: &Schedule) -> String {
    let phases: Vec<_> = schedule.phases().iter().map(phase).collect();
    phases.join(", then ")
}

fn phase(phase: &Phase) -> String {
    let (from, to) = (phase.from, phase.to);
    let time = seconds(phase.duration);
    #[expect(clippy::float_cmp, reason = "a constant rate is written down twice")]
    let is_constant = from == to;
    if is_constant {
        format!("{from} per second for {time}")
    } else {
        format!("{from} to {to} per second over {time}")
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
