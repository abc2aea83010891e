//! Evidence that either side was the limit, as sentences.

use std::time::Duration;

use crate::plan::{Pace, Schedule};
use crate::record::FailureKind;
use crate::run::{Measurement, StreamMeasurement};
use crate::verdict::{ServerUsage, ThreadUsage};

/// Share of its time above which a thread counts as saturated.
const BUSY_MAX: f64 = 0.9;
/// Share of the latency that may be the generator's own lag.
const LAG_SHARE_MAX: f64 = 0.1;
/// Lag that a thread that sleeps until a request is due cannot avoid: 20 us.
const LAG_MIN: Duration = Duration::from_micros(20);
/// Requests without which a p99 rests on less than ten of them.
const P99_REQUESTS_MIN: u64 = 1000;
/// Share of the requests that may be late, or lost, without a remark: 0.1 %.
const LATE_SHARE_MAX: f64 = StreamMeasurement::MISSED_MAX;
/// Late requests below which chance alone may have made them late: 10.
const LATE_MIN: u64 = 10;
/// Share of a schedule's length by which the last response may come after its end.
const DRAIN_SHARE_MAX: f64 = 0.1;
/// Multiple of the latency at p10 that the same may take: responses of a server that keeps up come
/// as late as the others did.
const DRAIN_LATENCIES_MAX: u32 = 5;
/// Share of its time above which a thread's wait for a core is reported.
const WAITING_MAX: f64 = 0.05;

/// The evidence, by the side that it speaks against.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) generator: Vec<String>,
    pub(super) server: Vec<String>,
    /// The competition of both sides for the same cores.
    pub(super) competition: Option<String>,
    /// Further remarks for the reader.
    pub(super) remarks: Vec<String>,
}

impl Evidence {
    pub(super) fn of(measurement: &Measurement) -> Self {
        let several = measurement.streams.len() > 1;
        let mut evidence = Self::default();
        for (number, stream) in measurement.streams.iter().enumerate() {
            let name = |text| of_stream(text, several.then_some(stream.plan.name.as_str()));
            let mut threads = measurement.generator.iter();
            let busiest = threads
                .by_ref()
                .filter(|thread| thread.stream == number)
                .max_by(|one, other| one.busy().total_cmp(&other.busy()));
            let against_us = against_generator(stream, busiest);
            if against_us.is_empty() {
                evidence.server.extend(without_response(stream).map(name));
            }
            evidence.generator.extend(against_us.into_iter().map(name));
        }
        evidence
            .server
            .extend(measurement.server.and_then(saturated));
        evidence.competition = competition(measurement);
        if evidence.generator.is_empty() && evidence.server.is_empty() {
            evidence.remarks.extend(shares(measurement));
        }
        evidence
    }
}

fn of_stream(text: String, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{name}: {text}"),
        None => text,
    }
}

fn against_generator(stream: &StreamMeasurement, busiest: Option<&ThreadUsage>) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(busiest.and_then(|thread| busy(stream, thread)));
    if stream.plan.is_open_loop() {
        found.extend(late(stream));
        found.extend(lagging(stream));
    }
    found
}

fn busy(stream: &StreamMeasurement, thread: &ThreadUsage) -> Option<String> {
    let share = thread.busy();
    (share > BUSY_MAX && !stream.plan.spin).then(|| {
        format!(
            "The generator's busiest thread ran {} of the time. Use more threads (--threads), \
            another machine, connections that are kept alive (-k), or a lower rate.",
            percent(share)
        )
    })
}

fn late(stream: &StreamMeasurement) -> Option<String> {
    let counts = &stream.tally.counts;
    let share = part(counts.late_by_generator, counts.sent);
    (share > LATE_SHARE_MAX && counts.late_by_generator >= LATE_MIN).then(|| {
        format!(
            "The generator sent {} of {} requests ({}) more than 1 ms after their time although a \
            connection was free. Use more threads (--threads), a core of its own, or a lower rate.",
            counts.late_by_generator,
            counts.sent,
            percent(share)
        )
    })
}

fn lagging(stream: &StreamMeasurement) -> Option<String> {
    let tally = &stream.tally;
    let latency = tally.latency();
    let with_p99 = latency.count() >= P99_REQUESTS_MIN;
    let percentiles = [("median", 0.5), ("p99", 0.99)];
    let (name, lag, whole) = percentiles
        .into_iter()
        .take(if with_p99 { 2 } else { 1 })
        .map(|(name, part)| (name, tally.lag.quantile(part), latency.quantile(part)))
        .find(|(_, lag, whole)| *lag > LAG_MIN && *lag > whole.mul_f64(LAG_SHARE_MAX))?;
    let remedy = if stream.plan.spin {
        "Give it a core of its own."
    } else {
        "Use --spin, which polls instead of sleeping, and a core of its own."
    };
    Some(format!(
        "The generator's own delay makes up {} of the latency: at the {name} it sent {} late, and \
        the latency is {}. {remedy}",
        percent((lag.as_secs_f64() / whole.as_secs_f64().max(1e-9)).min(1.0)),
        time(lag),
        time(whole),
    ))
}

/// Open loop: describes responses that lagged behind the asked rate.
fn without_response(stream: &StreamMeasurement) -> Option<String> {
    let Pace::Open(schedule) = &stream.plan.pace else {
        return None;
    };
    let counts = &stream.tally.counts;
    let timed_out = stream.tally.failures.count(FailureKind::Timeout);
    let kinds = [
        (
            counts.late_for_connection,
            "were sent late, because every connection still waited for a response",
        ),
        (
            counts.due.saturating_sub(counts.sent),
            "were never sent, because every connection still waited for a response",
        ),
        (timed_out, "had no response in time"),
    ];
    let told: Vec<_> = kinds
        .into_iter()
        .filter(|(count, _)| part(*count, counts.due) > LATE_SHARE_MAX)
        .map(|(count, what)| format!("{} {what}", percent(part(count, counts.due))))
        .collect();
    if told.is_empty() {
        return drained_late(stream, schedule);
    }
    Some(format!(
        "The server fell behind the asked rate: of {} requests {}. Ask for a lower rate, or allow \
        more connections (-c) if the server can use them.",
        counts.due,
        told.join(", ")
    ))
}

fn drained_late(stream: &StreamMeasurement, schedule: &Schedule) -> Option<String> {
    let drain = stream.elapsed.saturating_sub(schedule.duration());
    let usual = stream.tally.latency().quantile(0.1);
    let is_late =
        drain > schedule.duration().mul_f64(DRAIN_SHARE_MAX) && drain > usual * DRAIN_LATENCIES_MAX;
    is_late.then(|| {
        format!(
            "The server fell behind the asked rate: its last response came {} after the last \
            request was due. Ask for a lower rate.",
            time(drain)
        )
    })
}

fn saturated(server: ServerUsage) -> Option<String> {
    let used = used(&server);
    if server.cores > 0 && server.cores_used() >= BUSY_MAX * f64::from(server.cores) {
        return Some(format!("The server used {used} that it may use."));
    }
    let share = server.busiest_share();
    (share >= BUSY_MAX).then(|| {
        format!(
            "One thread of the server ran {} of the time, while all together used {used}: it \
            would have to spread its work.",
            percent(share)
        )
    })
}

fn used(server: &ServerUsage) -> String {
    let used = server.cores_used();
    match server.cores {
        0 => format!("{used:.2} cores"),
        1 => format!("{used:.2} of the one core"),
        cores => format!("{used:.2} of the {cores} cores"),
    }
}

/// Describes a load thread's wait for a core, and the server's part in it.
fn competition(measurement: &Measurement) -> Option<String> {
    let most = measurement
        .generator
        .iter()
        .map(ThreadUsage::waiting)
        .fold(0.0, f64::max);
    if most <= WAITING_MAX {
        return None;
    }
    let waited = format!(
        "A thread that made load waited {} of the time for a core",
        percent(most.min(1.0))
    );
    Some(match measurement.server {
        Some(server) if server.cores_shared > 0 => format!(
            "{waited}, and may use {} of the server's {} cores: keep both on cores of their own \
            (taskset -c).",
            server.cores_shared, server.cores
        ),
        _ => format!("{waited}: another program, or too many threads, kept it from running."),
    })
}

fn shares(measurement: &Measurement) -> Option<String> {
    let busy = measurement
        .generator
        .iter()
        .map(ThreadUsage::busy)
        .reduce(f64::max)?;
    let ours = format!(
        "The generator's busiest thread ran {} of the time",
        percent(busy)
    );
    Some(match measurement.server {
        Some(server) => format!("{ours}, the server used {}.", used(&server)),
        None => format!("{ours}."),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a count of requests")]
fn part(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}

fn percent(share: f64) -> String {
    let digits = if share < 0.1 { 2 } else { 0 };
    format!("{:.digits$} %", share * 100.0)
}

fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        _ if micros < 1e3 => format!("{micros:.0} us"),
        _ if micros < 1e6 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}
