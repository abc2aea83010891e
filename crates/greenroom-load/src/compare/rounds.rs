//! The rounds of a comparison.

use super::cores::{self, Cores, Pinned, Split};
use super::plan::{Run, order};
use super::response::Response;
use super::server::Server;
use super::{Check, CompareError, Comparison, Outcome, Sample, Series, Step, Turn};
use crate::plan::Plan;
use crate::run::{Measurement, Progress, RunError, Stop, StreamMeasurement};
use crate::verdict::Processes;

/// A function that makes a plan's load, as [`crate::run::run`] does.
pub(super) type Load<'a> = dyn FnMut(
        &Plan,
        Option<Processes>,
        &Stop,
        &mut dyn FnMut(&Progress<'_>),
    ) -> Result<Measurement, RunError>
    + 'a;

/// Compares servers.
///
/// The calling thread is kept on the load's cores while it makes load, and has its own back at the
/// end. When `stop` is set, the complete rounds so far are returned.
///
/// # Errors
/// [`CompareError`] when the comparison contradicts itself, a server does not start, responds with
/// nothing or something else than the first one, or ends by itself; and when it was interrupted in
/// its first round. No server is left running.
pub fn run(
    comparison: &Comparison,
    stop: &Stop,
    progress: &mut dyn FnMut(&Step<'_>),
) -> Result<Outcome, CompareError> {
    run_with(comparison, stop, progress, &mut crate::run::run)
}

pub(super) fn run_with(
    comparison: &Comparison,
    stop: &Stop,
    progress: &mut dyn FnMut(&Step<'_>),
    load: &mut Load<'_>,
) -> Result<Outcome, CompareError> {
    comparison.validate()?;
    let split = cores::split(
        &Cores::available()?,
        comparison.server_cores.as_ref(),
        comparison.load_cores.as_ref(),
    )?;
    let runs = comparison.runs();
    let mut outcome = empty(comparison, &split, &runs);
    let mut bench = Bench {
        comparison,
        split,
        stop,
        progress,
        load,
        reference: None,
        difference: None,
    };
    for round in 0..comparison.rounds {
        match bench.round(round, &runs) {
            Ok(samples) => outcome.add_round(samples),
            Err(CompareError::Interrupted) if round > 0 => break,
            Err(error) => return Err(error),
        }
    }
    outcome.difference = bench.difference;
    Ok(outcome)
}

fn empty(comparison: &Comparison, split: &Split, runs: &[Run<'_>]) -> Outcome {
    let series = |run: &Run<'_>| Series {
        name: run.name.clone(),
        samples: Vec::new(),
        streams: Vec::new(),
    };
    Outcome {
        series: runs.iter().map(series).collect(),
        rounds_asked: comparison.rounds,
        server_cores: split.server.clone(),
        load_cores: split.load.clone(),
        difference: None,
    }
}

/// The state that all runs have in common.
struct Bench<'a, 'b> {
    comparison: &'a Comparison,
    split: Split,
    stop: &'a Stop,
    progress: &'a mut dyn FnMut(&Step<'_>),
    load: &'a mut Load<'b>,
    /// The first response of all, and the name of its server.
    reference: Option<(String, Response)>,
    difference: Option<String>,
}

impl Bench<'_, '_> {
    /// Runs one round and returns its samples in the order of `runs`, independent of their order in
    /// time.
    fn round(
        &mut self,
        round: u32,
        runs: &[Run<'_>],
    ) -> Result<Vec<(Sample, StreamMeasurement)>, CompareError> {
        let mut samples: Vec<_> = runs.iter().map(|_| None).collect();
        for index in order(round, runs.len()) {
            let turn = Turn {
                name: &runs[index].name,
                round: round + 1,
                rounds: self.comparison.rounds,
            };
            samples[index] = Some(self.turn(turn, &runs[index])?);
        }
        Ok(samples.into_iter().flatten().collect())
    }

    fn turn(
        &mut self,
        turn: Turn<'_>,
        run: &Run<'_>,
    ) -> Result<(Sample, StreamMeasurement), CompareError> {
        if self.stop.is_stopped() {
            return Err(CompareError::Interrupted);
        }
        (self.progress)(&Step::Begins(turn));
        let cores = self.split.server.clone();
        let mut server = Server::start(&self.comparison.launch(run, cores), self.stop)?;
        let _pinned = Pinned::to(self.split.load.as_ref())?;
        self.first_response(run, &server)?;
        if let Some(plan) = self.comparison.warming_up(run) {
            self.load_unseen(run, &plan)?;
        }
        let mut measurement = self.measure(turn, run, &server)?;
        server.check("while it was under load")?;
        let sample = Sample::of(turn.round, &measurement);
        let stream = measurement.streams.swap_remove(0);
        if sample.responses == 0 {
            return Err(without_response(run, &stream, &server));
        }
        (self.progress)(&Step::Ended(turn, &sample));
        Ok((sample, stream))
    }

    /// Compares the first response with that of the first run of all.
    fn first_response(&mut self, run: &Run<'_>, server: &Server) -> Result<(), CompareError> {
        let plan = self.comparison.first_request(run);
        let mut measurement = self.load_unseen(run, &plan)?;
        let mut stream = measurement.streams.swap_remove(0);
        let Some(first) = stream.first.take() else {
            return Err(without_response(run, &stream, server));
        };
        let response = Response::from(first);
        let Some((one, reference)) = &self.reference else {
            self.reference = Some((run.name.clone(), response));
            return Ok(());
        };
        let Some(difference) = reference.difference(&response) else {
            return Ok(());
        };
        let error = CompareError::Differs {
            one: one.clone(),
            other: run.name.clone(),
            difference,
        };
        match self.comparison.check {
            Check::Body => Err(error),
            Check::Nothing => {
                self.difference.get_or_insert_with(|| error.to_string());
                Ok(())
            }
        }
    }

    fn measure(
        &mut self,
        turn: Turn<'_>,
        run: &Run<'_>,
        server: &Server,
    ) -> Result<Measurement, CompareError> {
        let plan = self.comparison.measured(run);
        let progress = &mut *self.progress;
        let mut report = |interval: &Progress<'_>| progress(&Step::Progress(turn, interval));
        let processes = Processes::of(server.pid());
        complete(run, (self.load)(&plan, processes, self.stop, &mut report))
    }

    fn load_unseen(&mut self, run: &Run<'_>, plan: &Plan) -> Result<Measurement, CompareError> {
        complete(run, (self.load)(plan, None, self.stop, &mut |_| ()))
    }
}

fn complete(
    run: &Run<'_>,
    measured: Result<Measurement, RunError>,
) -> Result<Measurement, CompareError> {
    match measured {
        Ok(measurement) if measurement.interrupted => Err(CompareError::Interrupted),
        Ok(measurement) => Ok(measurement),
        Err(source) => Err(CompareError::Run {
            name: run.name.clone(),
            source,
        }),
    }
}

fn without_response(run: &Run<'_>, stream: &StreamMeasurement, server: &Server) -> CompareError {
    let failures = &stream.tally.failures;
    let kinds: Vec<_> = failures
        .iter()
        .map(|(kind, count)| {
            let detail = failures.detail(kind).unwrap_or_default();
            format!("{count} x {kind} ({}) {detail}", kind.explanation())
        })
        .collect();
    CompareError::NoResponse {
        name: run.name.clone(),
        reason: if kinds.is_empty() {
            "none ended".to_owned()
        } else {
            kinds.join(", ").trim_end().to_owned()
        },
        output: server.output(),
    }
}
