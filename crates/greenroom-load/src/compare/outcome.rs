//! The result of a comparison.

use super::{Cores, Sample};
use crate::run::StreamMeasurement;

/// Rounds whose whole measurements are kept for plots. A run's seven histograms take 1.9 MB, so two
/// servers and the control take 91 MB at most, and sixteen take 520 MB.
const KEPT_ROUNDS_MAX: usize = 16;

/// The runs of all servers.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The servers in the comparison's order, and the first one's second runs at the end.
    pub series: Vec<Series>,
    /// Rounds that were asked for; those of an interruption are left out whole.
    pub rounds_asked: u32,
    /// Cores of the server, if they were chosen.
    pub server_cores: Option<Cores>,
    /// Cores of the load, if they were chosen.
    pub load_cores: Option<Cores>,
    /// The first difference of the first responses, where the comparison went on all the same.
    pub difference: Option<String>,
}

/// The runs of one server.
#[derive(Clone, Debug)]
pub struct Series {
    /// The contender's name; of the control with `(again)`.
    pub name: String,
    /// The numbers of each round.
    pub samples: Vec<Sample>,
    /// The whole measurements of the first 16 rounds, without first responses and records.
    pub streams: Vec<StreamMeasurement>,
}

impl Outcome {
    /// Returns the number of complete rounds.
    #[must_use]
    pub fn rounds(&self) -> usize {
        let rounds = self.series.iter().map(|series| series.samples.len());
        rounds.min().unwrap_or(0)
    }

    /// Returns each contender's name and its measurements, without the control's, for a plot of all
    /// servers.
    #[must_use]
    pub fn into_plots(self) -> Vec<(String, Vec<StreamMeasurement>)> {
        let mut series = self.series;
        series.pop();
        series
            .into_iter()
            .map(|series| (series.name, series.streams))
            .collect()
    }

    pub(super) fn add_round(&mut self, round: Vec<(Sample, StreamMeasurement)>) {
        for (series, (sample, mut stream)) in self.series.iter_mut().zip(round) {
            series.samples.push(sample);
            if series.streams.len() < KEPT_ROUNDS_MAX {
                stream.first = None;
                stream.records = Vec::new();
                series.streams.push(stream);
            }
        }
    }
}
