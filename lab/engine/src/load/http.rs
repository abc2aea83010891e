//! Requests as a load, by greenroom-load.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::ensure;
use greenroom_load::plan::{End, Pace, Phase, Protocol, Schedule, StreamPlan, Target};
use greenroom_load::record::Times;
use greenroom_load::run::{Measurement, StreamMeasurement};

use super::Measured;
use crate::declare::{Load, Number};
use crate::figures::Figures;
use crate::words::Words;

/// The most connections of an open loop that says nothing.
const OPEN_CONNECTIONS: f64 = 1000.0;
const TIMEOUT_SECONDS: f64 = 30.0;

/// Plans a load.
///
/// # Errors
/// If an expression has no value, or a value is out of range.
pub(super) fn stream(load: &Load, words: &Words, figures: &Figures) -> anyhow::Result<StreamPlan> {
    let number = |number: &Option<Number>, default: f64| match number {
        Some(number) => number.value(words, figures),
        None => Ok(default),
    };
    let url = match (&load.url, &load.path) {
        (Some(url), _) => words.fill(url)?,
        (None, path) => words.fill(&format!("{{url}}{}", path.as_deref().unwrap_or("/")))?,
    };
    let mut stream = StreamPlan::new(url.parse::<Target>()?);
    stream.name.clone_from(&load.name);
    stream.request.method.clone_from(&load.method);
    stream.request.body = words.fill(&load.body)?.into_bytes();
    for (name, value) in &load.headers {
        stream
            .request
            .fields
            .push((name.clone(), words.fill(value)?));
    }
    stream.keep_alive = load.keep_alive;
    stream.variable_length = true;
    if load.http2 {
        stream.protocol = Protocol::Http2;
    }
    stream.tls.insecure = true;
    let sources = 0..load.sources.unwrap_or(0);
    stream.sources = sources
        .map(|n| Ipv4Addr::new(127, 0, 0, n.saturating_add(2)).into())
        .collect();
    stream.in_flight_max = whole(number(&load.in_flight, 1.0)?)?;
    stream.timeout = time(number(&load.timeout_seconds, TIMEOUT_SECONDS)?)?;
    let seconds = load
        .seconds
        .as_ref()
        .map(|one| one.value(words, figures))
        .transpose()?;
    if let Some(rate) = &load.rate {
        let rate = rate.value(words, figures)?;
        ensure!(seconds.is_some(), "an open loop must have `seconds`");
        stream.pace = Pace::Open(Schedule::new(vec![Phase {
            from: number(&load.ramp_from, rate)?,
            to: rate,
            duration: time(seconds.unwrap_or_default())?,
        }])?);
        stream.connections = whole(number(&load.connections, OPEN_CONNECTIONS)?)?;
        return Ok(stream);
    }
    ensure!(load.ramp_from.is_none(), "`ramp_from` needs a `rate`");
    let requests = load
        .requests
        .as_ref()
        .map(|one| one.value(words, figures))
        .transpose()?;
    ensure!(
        seconds.is_some() || requests.is_some(),
        "a closed loop must have `seconds` or `requests`"
    );
    stream.end = End {
        requests: requests.map(whole).transpose()?.map(u64::from),
        duration: seconds.map(time).transpose()?,
    };
    stream.connections = whole(number(&load.connections, 1.0)?)?;
    Ok(stream)
}

/// Adds the figures of a run.
#[expect(clippy::cast_precision_loss, reason = "counts of requests")]
pub(super) fn add(measurement: Measurement, measured: &mut Measured) {
    measured.usage = measurement.server;
    for stream in measurement.streams {
        let name = stream.plan.name.clone();
        measured.responses += stream.tally.responses() as f64;
        let found = of_stream(&stream).into_iter();
        measured
            .figures
            .extend(found.map(|(key, value)| (format!("{name}.{key}"), value)));
        measured.streams.push(stream);
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests")]
fn of_stream(stream: &StreamMeasurement) -> Vec<(&'static str, f64)> {
    let tally = &stream.tally;
    let seconds = stream.elapsed.as_secs_f64().max(1e-9);
    let (ok, rejected) = (tally.good.count() as f64, tally.bad.count() as f64);
    let mut figures = vec![
        ("seconds", seconds),
        ("sent", tally.counts.sent as f64),
        ("ok", ok),
        ("rejected", rejected),
        (
            "failed",
            (tally.failures.total() + stream.unfinished) as f64,
        ),
        ("timed_out", tally.timed_out.count() as f64),
        ("missed", stream.missed()),
        ("rate", stream.requests_per_second()),
        ("ok_rate", ok / seconds),
    ];
    if !tally.lag.is_empty() {
        figures.push(("late_p99_ms", tally.lag.quantile(0.99).as_secs_f64() * 1e3));
    }
    let mut times = |of: &Times, names: [&'static str; 6]| {
        if of.is_empty() {
            return;
        }
        let parts = [0.5, 0.9, 0.99, 0.999].map(|part| of.quantile(part));
        let all = parts.into_iter().chain([of.max(), of.mean()]);
        let milliseconds = all.map(|time| time.as_secs_f64() * 1e3);
        figures.extend(
            names
                .into_iter()
                .zip(milliseconds)
                .filter(|(name, _)| !name.is_empty()),
        );
    };
    times(
        &tally.latency(),
        ["p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "mean_ms"],
    );
    times(
        &tally.good,
        ["ok_p50_ms", "ok_p90_ms", "ok_p99_ms", "", "ok_max_ms", ""],
    );
    times(
        &tally.bad,
        ["bad_p50_ms", "", "bad_p99_ms", "", "bad_max_ms", ""],
    );
    figures
}

fn time(seconds: f64) -> anyhow::Result<Duration> {
    let time = Duration::try_from_secs_f64(seconds);
    time.map_err(|_| anyhow::anyhow!("{seconds} is no number of seconds"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range"
)]
fn whole(number: f64) -> anyhow::Result<u32> {
    let rounded = number.round();
    ensure!(
        (1.0..=f64::from(u32::MAX)).contains(&rounded),
        "{number} is no whole number from 1"
    );
    Ok(rounded as u32)
}
