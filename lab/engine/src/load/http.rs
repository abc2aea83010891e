//! Requests as a load, by greenroom-load.

use std::fs::File;
use std::io::BufReader;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use greenroom_load::plan::{End, Pace, Paths, Phase, Protocol, Schedule, StreamPlan, Target};
use greenroom_load::record::Times;
use greenroom_load::run::{Measurement, StreamMeasurement};

use super::Measured;
use crate::declare::{Load, Number, Stage};
use crate::figures::Figures;
use crate::words::Words;

/// The most connections of an open loop that says nothing.
const OPEN_CONNECTIONS: f64 = 1000.0;
/// The most that an interval's begin may be too early.
const STRAY_SECONDS: f64 = 0.1;
const TIMEOUT_SECONDS: f64 = 30.0;
/// The longest time of a response at a rate that is not too much.
const COLLAPSED: Duration = Duration::from_millis(500);

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
    if let Some(file) = &load.urls {
        let file = words.fill(file)?;
        let list = File::open(&file).with_context(|| file.clone())?;
        let (target, paths) = Paths::read(BufReader::new(list)).context(file)?;
        (stream.targets, stream.paths) = (vec![target], Some(Arc::new(paths)));
    }
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
    let optional = |number: &Option<Number>| {
        let value = number.as_ref().map(|one| one.value(words, figures));
        value.transpose()
    };
    let phases = phases(load, words, figures)?;
    if !phases.is_empty() {
        stream.pace = Pace::Open(Schedule::new(phases)?);
        stream.connections = whole(number(&load.connections, OPEN_CONNECTIONS)?)?;
        return Ok(stream);
    }
    ensure!(load.ramp_from.is_none(), "`ramp_from` needs a `rate`");
    let (requests, seconds) = (optional(&load.requests)?, optional(&load.seconds)?);
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

/// Returns the rates of an open loop; none of a closed one.
fn phases(load: &Load, words: &Words, figures: &Figures) -> anyhow::Result<Vec<Phase>> {
    let phase = |from: &Number, to: &Number, seconds: &Number| {
        Ok(Phase {
            from: from.value(words, figures)?,
            to: to.value(words, figures)?,
            duration: time(seconds.value(words, figures)?)?,
        })
    };
    if let Some(rate) = &load.rate {
        let seconds = load.seconds.as_ref();
        let seconds = seconds.context("an open loop must have `seconds`")?;
        return Ok(vec![phase(
            load.ramp_from.as_ref().unwrap_or(rate),
            rate,
            seconds,
        )?]);
    }
    let stages = load.stages.iter();
    stages
        .map(|Stage { rate, seconds }| phase(rate, rate, seconds))
        .collect()
}

/// Returns the figures of a load's windows.
///
/// # Errors
/// If an expression has no value.
#[expect(clippy::cast_precision_loss, reason = "counts of requests")]
pub(super) fn windows(
    load: &Load,
    stream: &StreamMeasurement,
    words: &Words,
    figures: &Figures,
) -> anyhow::Result<Figures> {
    let mut found = Figures::new();
    for (window, [from, to]) in &load.windows {
        let (from, to) = (from.value(words, figures)?, to.value(words, figures)?);
        let (mut ok, mut latency) = (0, Times::default());
        let within = |begin: Duration| (from..to).contains(&(begin.as_secs_f64() + STRAY_SECONDS));
        for point in stream.timeline.points() {
            if within(point.begin) {
                ok += point.good;
                latency.add(&point.latency());
            }
        }
        let mut put =
            |key: &str, value| found.insert(format!("{}.{window}.{key}", load.name), value);
        put("ok_rate", ok as f64 / (to - from).max(1e-9));
        if !latency.is_empty() {
            let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
            put("p50_ms", milliseconds(latency.quantile(0.5)));
            put("p99_ms", milliseconds(latency.quantile(0.99)));
            put("max_ms", milliseconds(latency.max()));
        }
    }
    Ok(found)
}

/// Adds the figures of a run.
#[expect(clippy::cast_precision_loss, reason = "counts of requests")]
pub(super) fn add(measurement: Measurement, measured: &mut Measured) {
    measured.usage = measurement.server;
    let generator = measurement.generator.iter();
    let generator: Duration = generator.map(|thread| thread.user + thread.system).sum();
    measured.generator_cores =
        generator.as_secs_f64() / measurement.elapsed.as_secs_f64().max(1e-9);
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
    let failed = (tally.failures.total() + stream.unfinished) as f64;
    let mut figures = vec![
        ("seconds", seconds),
        ("sent", tally.counts.sent as f64),
        ("ok", ok),
        ("ok_500_ms", tally.good.count_within(COLLAPSED) as f64),
        ("rejected", rejected),
        ("failed", failed),
        ("ok_percent", 100.0 * ok / (ok + rejected + failed).max(1.0)),
        ("timed_out", tally.timed_out.count() as f64),
        ("missed", stream.missed()),
        ("rate", stream.requests_per_second()),
        ("ok_rate", ok / seconds),
    ];
    if let Some(rate) = stream.by_rate.collapse(COLLAPSED) {
        figures.push(("collapse_500_ms", rate));
    }
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
    let all = tally.latency();
    times(
        &all,
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
    if !all.is_empty() {
        figures.push(("min_ms", all.min().as_secs_f64() * 1e3));
    }
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
