//! A comparison in numbers, for JSON and for the table.

use std::collections::BTreeMap;

use serde::Serialize;

use super::statistics::median;
use super::{Difference, Metric, Outcome, Ratio, Sample, Series};
use crate::run::StreamMeasurement;
use crate::verdict::Limit;

/// A comparison in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Rounds that are complete.
    pub rounds: usize,
    /// Rounds that were asked for.
    pub rounds_asked: u32,
    /// Cores of the server, such as `0,1`; `None` when they were left to the kernel.
    pub server_cores: Option<String>,
    /// Cores of the load.
    pub load_cores: Option<String>,
    /// The servers in the comparison's order, and the first one's second runs at the end.
    pub series: Vec<SeriesSummary>,
    /// Sentences to read before the numbers are believed.
    pub remarks: Vec<String>,
}

/// One server in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesSummary {
    /// The contender's name; of the control with `(again)`.
    pub name: String,
    /// True if it is the first server's second run in each round.
    pub is_control: bool,
    /// Medians, and ratios to the first server.
    pub metrics: BTreeMap<Metric, MetricSummary>,
    /// The numbers of each round.
    pub samples: Vec<Sample>,
}

/// A number over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MetricSummary {
    /// The median of the rounds; `None` when the server was not seen.
    pub median: Option<f64>,
    /// The ratio to the first server, round by round; `None` for that one.
    pub ratio: Option<Ratio>,
}

impl Outcome {
    /// Returns the comparison in numbers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let base = self.series.first();
        let control = self.series.len().saturating_sub(1);
        let series: Vec<_> = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series)| SeriesSummary {
                name: series.name.clone(),
                is_control: index == control,
                metrics: metrics(series, base.filter(|_| index > 0)),
                samples: series.samples.clone(),
            })
            .collect();
        Summary {
            rounds: self.rounds(),
            rounds_asked: self.rounds_asked,
            server_cores: self.server_cores.as_ref().map(ToString::to_string),
            load_cores: self.load_cores.as_ref().map(ToString::to_string),
            remarks: self.remarks(&series),
            series,
        }
    }

    fn remarks(&self, series: &[SeriesSummary]) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.rounds() < self.rounds_asked as usize {
            remarks.push("The comparison was interrupted.".to_owned());
        }
        let cores = self.server_cores.as_ref().zip(self.load_cores.as_ref());
        if cores.is_none_or(|(server, load)| server.overlap(load)) {
            remarks.push(
                "The server and its load shared cores: each took time from the other.".to_owned(),
            );
        }
        remarks.extend(self.difference.clone());
        remarks.extend(series.last().and_then(noise));
        remarks.extend(series.iter().flat_map(shortcomings));
        remarks
    }
}

fn metrics(series: &Series, base: Option<&Series>) -> BTreeMap<Metric, MetricSummary> {
    let summary = |metric: Metric| {
        let values: Vec<f64> = series
            .samples
            .iter()
            .filter_map(|one| metric.of(one))
            .collect();
        let ratio = base.and_then(|base| {
            let rounds = series.samples.iter().zip(&base.samples);
            let pairs: Vec<_> = rounds
                .filter_map(|(one, base)| Some((metric.of(one)?, metric.of(base)?)))
                .collect();
            Ratio::of(&pairs)
        });
        let median = median(&values);
        (metric, MetricSummary { median, ratio })
    };
    Metric::ALL.into_iter().map(summary).collect()
}

fn noise(control: &SeriesSummary) -> Option<String> {
    let differs = |(metric, summary): (&Metric, &MetricSummary)| {
        let ratio = summary.ratio?;
        (ratio.difference == Difference::Seen).then(|| {
            format!(
                "{} by {:+.1} %",
                metric.name().trim(),
                (ratio.median - 1.0) * 100.0
            )
        })
    };
    let differing: Vec<_> = control.metrics.iter().filter_map(differs).collect();
    (!differing.is_empty()).then(|| {
        format!(
            "Two runs of the same server differ ({}): such a difference between servers means \
            nothing. One number in twenty differs so by chance; if most do, the machine was not \
            quiet.",
            differing.join(", ")
        )
    })
}

fn shortcomings(series: &SeriesSummary) -> Vec<String> {
    let (name, samples) = (&series.name, &series.samples);
    let runs = |is: fn(&Sample) -> bool| samples.iter().filter(|sample| is(sample)).count();
    let limited = runs(|one| matches!(one.limit, Limit::Generator | Limit::Both));
    let missed = runs(|one| one.missed > StreamMeasurement::MISSED_MAX);
    let failed: u64 = samples.iter().map(|one| one.failed).sum();
    let not_2xx: u64 = samples.iter().map(|one| one.not_2xx).sum();
    let unseen = runs(|one| one.cpu_us.is_none());
    let of = samples.len();
    [
        (
            limited > 0,
            format!(
                "{name}: the generator was the limit in {limited} of {of} runs; the \
                server may be better than that."
            ),
        ),
        (
            missed > 0,
            format!("{name}: the asked rate was missed in {missed} of {of} runs."),
        ),
        (
            failed > 0,
            format!("{name}: {failed} requests got no response."),
        ),
        (
            not_2xx > 0,
            format!("{name}: {not_2xx} responses had a status other than 2xx."),
        ),
        (
            unseen > 0,
            format!(
                "{name}: in {unseen} of {of} runs its processes could not be seen, \
                so its CPU time and memory are not known."
            ),
        ),
    ]
    .into_iter()
    .filter(|(applies, _)| *applies)
    .map(|(_, text)| text)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns seven rounds around this rate, a percent up or down.
    fn series(name: &str, rate: f64) -> Series {
        let sample = |round: u32| Sample {
            round,
            responses: 100,
            failed: 0,
            not_2xx: 0,
            missed: 0.0,
            limit: Limit::Server,
            requests_per_second: rate * (0.97 + 0.01 * f64::from(round)),
            cpu_us: Some(10.0),
            cpu_user_us: None,
            cpu_system_us: None,
            p50_ms: 1.0,
            p99_ms: 2.0,
            max_ms: 3.0,
            rss_mib: Some(4.0),
        };
        Series {
            name: name.to_owned(),
            samples: (1..=7).map(sample).collect(),
            streams: Vec::new(),
        }
    }

    fn outcome(series: Vec<Series>) -> Outcome {
        Outcome {
            series,
            rounds_asked: 7,
            server_cores: "0".parse().ok(),
            load_cores: "1".parse().ok(),
            difference: None,
        }
    }

    #[test]
    fn ratios_are_to_the_first_server() {
        let all = vec![series("a", 1e3), series("b", 2e3), series("a (again)", 1e3)];
        let summary = outcome(all).summary();
        assert!(summary.remarks.is_empty(), "{:?}", summary.remarks);
        let metric = |index: usize| summary.series[index].metrics[&Metric::RequestsPerSecond];
        assert_eq!(metric(0).ratio, None);
        let ratio = metric(1).ratio.expect("seven rounds");
        assert!((ratio.median - 2.0).abs() < 1e-9 && ratio.difference == Difference::Seen);
        let noise = metric(2).ratio.expect("seven rounds");
        assert_eq!((noise.median, noise.difference), (1.0, Difference::NotSeen));
        assert_eq!(summary.series[1].metrics[&Metric::CpuUser].median, None);
    }

    #[test]
    fn what_makes_numbers_doubtful_is_reported() {
        let mut slow = series("b", 500.0);
        slow.samples[2].limit = Limit::Generator;
        slow.samples[3].failed = 5;
        slow.samples[4].not_2xx = 6;
        slow.samples[5].missed = 0.01;
        slow.samples[6].cpu_us = None;
        let mut outcome = outcome(vec![series("a", 1e3), slow, series("a (again)", 1.1e3)]);
        outcome.rounds_asked = 9;
        outcome.load_cores = outcome.server_cores.clone();
        let remarks = outcome.summary().remarks;
        let expected = [
            "was interrupted",
            "shared cores",
            "requests/s by +10.0 %",
            "b: the generator was the limit in 1 of 7 runs",
            "b: the asked rate was missed in 1 of 7 runs",
            "b: 5 requests",
            "b: 6 responses",
            "b: in 1 of 7 runs its processes",
        ];
        assert_eq!(remarks.len(), expected.len(), "{remarks:?}");
        for (remark, part) in remarks.iter().zip(expected) {
            assert!(remark.contains(part), "{part:?} in {remark}");
        }
    }
}
