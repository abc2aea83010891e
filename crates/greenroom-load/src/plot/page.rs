//! The report of a run as one HTML page.

use std::time::Duration;

use askama::Template;

use crate::plan::Pace;
use crate::record::{FailureKind, Tally};
use crate::run::{Measurement, StreamMeasurement};
use crate::verdict::{Limit, ServerUsage, ThreadUsage, Verdict};

use super::look::{hex, paints};
use super::text::{float, grouped, milliseconds, number, rate};
use super::{Series, against_rate};

/// Columns of the summary.
const SUMMARY: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Rows of the percentile table: those of ab, and further nines.
const PERCENTILES: [f64; 12] = [
    50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9, 99.99, 99.999, 100.0,
];
const UNKNOWN: &str = "–";

/// The error of a page that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the page of the report could not be written: {0}")]
pub struct PageError(#[from] askama::Error);

/// Renders the report of a run as one HTML file, which loads nothing and runs no script: verdict,
/// the outcome of each stream, failures by kind, costs, figures and percentiles. `command` is the
/// command line as typed; `facts` are names and values about machine and time, shown as they are.
///
/// # Errors
/// [`PageError`] when the page's template fails.
pub fn html(
    measurement: &Measurement,
    command: &str,
    facts: &[(&str, &str)],
) -> Result<String, PageError> {
    let verdict = Verdict::of(measurement);
    let streams: Vec<_> = measurement.streams.iter().map(Stream::of).collect();
    let page = Page {
        title: streams.first().map_or("", |stream| stream.name),
        command,
        facts,
        warnings: warnings(measurement),
        limit: limit(verdict.limit),
        verdict: verdict.sentences.get(1..).unwrap_or_default(),
        costs: costs(measurement),
        figures: figures(measurement),
        colours: paints()
            .map(|paint| [hex(paint.light), hex(paint.dark)])
            .collect(),
        streams,
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: &'a str,
    command: &'a str,
    facts: &'a [(&'a str, &'a str)],
    warnings: Vec<String>,
    limit: &'static str,
    /// The sentences of the verdict.
    verdict: &'a [String],
    streams: Vec<Stream<'a>>,
    costs: Vec<Cost>,
    figures: Vec<Figure>,
    /// Pairs of a colour on white and its counterpart on dark.
    colours: Vec<[String; 2]>,
}

/// A stream's numbers as text.
struct Stream<'a> {
    name: &'a str,
    facts: Vec<(&'static str, String)>,
    /// Percentiles and maximum: head, latency, service time.
    summary: Vec<Times>,
    percentiles: Vec<Times>,
    failures: Vec<Failure<'a>>,
}

/// A percentile and its times in milliseconds.
struct Times {
    percentile: String,
    latency: String,
    service: String,
}

struct Failure<'a> {
    kind: FailureKind,
    count: String,
    detail: Option<&'a str>,
}

/// A row of the costs.
struct Cost {
    what: &'static str,
    generator: String,
    server: String,
}

struct Figure {
    title: &'static str,
    caption: &'static str,
    svg: String,
}

fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Generator => "The generator was the limit",
        Limit::Server => "The server was the limit",
        Limit::Both => "Server and generator were both at their limit",
        Limit::Nobody => "Nobody was at the limit",
        Limit::Unknown => "It is not known who was the limit",
    }
}

fn warnings(measurement: &Measurement) -> Vec<String> {
    let mut warnings = Vec::new();
    if measurement.gave_up {
        let why = measurement.why_it_gave_up();
        warnings.push(format!("The run gave up: {why}."));
    }
    if measurement.interrupted {
        warnings.push("The run was interrupted; this is what there was until then.".to_owned());
    }
    for stream in measurement
        .streams
        .iter()
        .filter(|one| one.missed_its_rate())
    {
        warnings.push(format!(
            "The rate was missed: {} % of the requests of {} were not sent by the schedule's end.",
            number(stream.missed() * 100.0, 1),
            stream.plan.name,
        ));
    }
    warnings
}

impl<'a> Stream<'a> {
    fn of(stream: &'a StreamMeasurement) -> Self {
        let tally = &stream.tally;
        Self {
            name: &stream.plan.name,
            facts: facts(stream),
            summary: times(tally, &[&SUMMARY[..], &[100.0]].concat()),
            percentiles: times(tally, &PERCENTILES),
            failures: failures(tally),
        }
    }
}

fn facts(stream: &StreamMeasurement) -> Vec<(&'static str, String)> {
    let (tally, counts) = (&stream.tally, &stream.tally.counts);
    let mut facts = vec![
        ("Responses", grouped(tally.responses())),
        ("Failures", grouped(tally.failures.total())),
        ("Responses per second", rate(stream.requests_per_second())),
        ("Duration", duration(stream.elapsed)),
    ];
    if let Pace::Open(schedule) = &stream.plan.pace {
        let mean = float(schedule.requests()) / schedule.duration().as_secs_f64();
        facts.push(("Asked for per second, mean", rate(mean)));
        facts.push(("Sent more than 1 ms late", grouped(counts.late())));
    }
    let others = [
        ("Responses not 2xx", tally.not_2xx()),
        ("Responses of another length", counts.other_length),
        ("Unfinished at the end", stream.unfinished),
    ];
    let others = others.into_iter().filter(|(_, count)| *count > 0);
    facts.extend(others.map(|(what, count)| (what, grouped(count))));
    facts
}

fn duration(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", milliseconds(time))
    } else {
        format!("{} s", number(time.as_secs_f64(), 2))
    }
}

fn times(tally: &Tally, percentiles: &[f64]) -> Vec<Times> {
    let latency = tally.latency();
    let text = |times: &crate::record::Times, percentile: f64| {
        if times.is_empty() {
            return UNKNOWN.to_owned();
        }
        milliseconds(times.quantile(percentile / 100.0))
    };
    percentiles
        .iter()
        .map(|percentile| Times {
            percentile: head(*percentile),
            latency: text(&latency, *percentile),
            service: text(&tally.processing, *percentile),
        })
        .collect()
}

fn head(percentile: f64) -> String {
    if percentile < 100.0 {
        format!("{percentile} %")
    } else {
        "max".to_owned()
    }
}

fn failures(tally: &Tally) -> Vec<Failure<'_>> {
    let failure = |(kind, count)| Failure {
        kind,
        count: grouped(count),
        detail: tally.failures.detail(kind).filter(|text| !text.is_empty()),
    };
    tally.failures.iter().map(failure).collect()
}

fn costs(measurement: &Measurement) -> Vec<Cost> {
    let server = measurement.server.as_ref();
    let of_server = |text: fn(&ServerUsage) -> String| server.map_or(UNKNOWN.to_owned(), text);
    let busy = measurement.generator.iter().map(ThreadUsage::busy);
    let busiest = busy.fold(0.0, f64::max) * 100.0;
    let others = [
        (
            "Busiest thread (% of a core)",
            number(busiest, 1),
            UNKNOWN.to_owned(),
        ),
        (
            "Threads",
            measurement.generator.len().to_string(),
            of_server(|server| grouped(server.threads_max.into())),
        ),
        (
            "Processes",
            "1".to_owned(),
            of_server(|server| grouped(server.processes.into())),
        ),
        (
            "Resident memory, most (MiB)",
            UNKNOWN.to_owned(),
            of_server(|server| number(float(server.rss_bytes_max) / 1024.0 / 1024.0, 1)),
        ),
    ];
    let cost = |(what, generator, server)| Cost {
        what,
        generator,
        server,
    };
    let others = others.into_iter().map(cost);
    cpu_costs(measurement).into_iter().chain(others).collect()
}

fn cpu_costs(measurement: &Measurement) -> [Cost; 3] {
    let streams = measurement.streams.iter();
    let ended = streams.map(|stream| stream.tally.tried()).sum();
    let threads = &measurement.generator;
    let user = threads.iter().map(|thread| thread.user).sum();
    let system = threads.iter().map(|thread| thread.system).sum();
    let cost = |what, generator, of: fn(&ServerUsage) -> Duration| Cost {
        what,
        generator: per_request(generator, ended),
        server: match &measurement.server {
            Some(server) => per_request(of(server), ended),
            None => UNKNOWN.to_owned(),
        },
    };
    [
        cost("CPU time per request, user (µs)", user, |server| {
            server.user
        }),
        cost("CPU time per request, system (µs)", system, |server| {
            server.system
        }),
        cost("CPU time per request, both (µs)", user + system, |server| {
            server.user + server.system
        }),
    ]
}

fn per_request(time: Duration, requests: u64) -> String {
    if requests == 0 {
        return UNKNOWN.to_owned();
    }
    number(time.as_secs_f64() * 1e6 / float(requests), 2)
}

fn figures(measurement: &Measurement) -> Vec<Figure> {
    let series: Vec<_> = measurement.streams.iter().map(Series::of).collect();
    let against_rate = against_rate::applies(&series).then(|| Figure {
        title: "Response time against request rate",
        caption: "How response times grow with the rate that was asked for.",
        svg: super::response_time_against_rate(&series),
    });
    let others = [
        Figure {
            title: "Response time and rate against time",
            caption: "Each point stands for one interval of the run; where a line breaks, nothing \
                got its response.",
            svg: super::against_time(&series),
        },
        Figure {
            title: "Response time by percentile",
            caption: "Each step to the right leaves a tenth of the slower requests.",
            svg: super::percentile_curve(&series),
        },
    ];
    against_rate.into_iter().chain(others).collect()
}
