//! The start of a program, on as many cores as its case has workers.

use std::path::PathBuf;
use std::process::Command;

use actor_bench_cases::{Case, Outcome, Sample};
use anyhow::Context as _;
use bench_kit::rounds::{self, AGAIN};
use bench_kit::tools::run;
use bench_kit::{Binaries, RunOptions};

use crate::foreign;
use crate::peer::Peer;

/// The seconds that a process may take beyond its measurement, before it is ended.
const SECONDS_MAX_OVER: u32 = 90;
const ACTORS: u32 = 1_000_000;
const QUICK_ACTORS: u32 = 100_000;
const MILLIS_PER_SECOND: u32 = 1_000;

/// A program that takes part, in turn with the others.
#[derive(Clone, Debug)]
pub(crate) struct Contestant {
    name: String,
    pub(crate) peer: Peer,
    program: Program,
}

#[derive(Clone, Debug)]
enum Program {
    /// Compiled module of Erlang.
    Erlang(PathBuf),
    /// Class files and libraries.
    Java(PathBuf),
    Native {
        /// Measures time.
        timed: PathBuf,
        /// Counts allocations.
        counted: PathBuf,
    },
    NotInstalled,
}

impl rounds::Contestant for Contestant {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Returns one for each peer, and the first one again.
pub(crate) fn contestants(peers: &[Peer], binaries: &Binaries) -> anyhow::Result<Vec<Contestant>> {
    let mut contestants = Vec::new();
    for &peer in peers {
        contestants.push(Contestant {
            name: peer.name().to_owned(),
            peer,
            program: program(peer, binaries)?,
        });
    }
    let mut again = contestants.first().context("no peer is named")?.clone();
    again.name.push_str(AGAIN);
    contestants.push(again);
    Ok(contestants)
}

fn program(peer: Peer, binaries: &Binaries) -> anyhow::Result<Program> {
    let counted = binaries.path("actor-bench-counted")?.to_owned();
    let target = counted.parent().context("it is in a folder")?;
    let found = match peer {
        Peer::Erlang => foreign::build_erlang(target)?.map(Program::Erlang),
        Peer::Pekko => foreign::build_pekko(target)?.map(Program::Java),
        _ => {
            let timed = binaries.path(&format!("peer-{}", flag(peer)))?.to_owned();
            Some(Program::Native { timed, counted })
        }
    };
    Ok(found.unwrap_or(Program::NotInstalled))
}

fn flag(peer: Peer) -> String {
    format!("{peer:?}").to_lowercase()
}

impl Contestant {
    /// Runs a case in a fresh process.
    pub(crate) fn measure(&self, case: Case, options: &RunOptions) -> Outcome {
        let measured = self.try_measure(case, options);
        measured.unwrap_or_else(|error| Outcome::missing(format!("failed: {error:#}")))
    }

    fn try_measure(&self, case: Case, options: &RunOptions) -> anyhow::Result<Outcome> {
        if matches!(self.program, Program::NotInstalled) {
            return Ok(Outcome::missing("not installed"));
        }
        let outcome = start(self.timed(case, options))?;
        match (&self.program, outcome) {
            (Program::Native { counted, .. }, Outcome::Measured(sample)) if case == Case::Async => {
                let mut command = placed(case, options);
                command.arg(counted).args(["--peer", &flag(self.peer)]);
                let allocations = match start(with_options(command, case, options))? {
                    Outcome::Measured(counted) => counted.allocations,
                    Outcome::Missing(_) => None,
                };
                Ok(Outcome::Measured(Sample {
                    allocations,
                    ..sample
                }))
            }
            (_, outcome) => Ok(outcome),
        }
    }

    fn timed(&self, case: Case, options: &RunOptions) -> Command {
        let mut command = placed(case, options);
        match &self.program {
            Program::NotInstalled => command,
            Program::Native { timed, .. } => {
                command.arg(timed);
                with_options(command, case, options)
            }
            Program::Java(output) => {
                let classes = format!("{0}/classes:{0}/lib/*", output.display());
                command.arg(foreign::java());
                command.args(["-Xms2g", "-Xmx6g", "-cp", &classes, "bench.ActorBench"]);
                command.args(plain(case, options));
                command
            }
            Program::Erlang(output) => {
                let workers = case.workers();
                let schedulers = format!("{workers}:{workers}");
                command.args(["erl", "-noshell", "-pa"]).arg(output);
                command.args(["+S", &schedulers, "+P", "4000000"]);
                command.args(["-s", "actor_bench", "main", "-extra"]);
                command.args(plain(case, options));
                command
            }
        }
    }
}

/// Returns a command on as many cores as the case has workers, for some minutes at most.
fn placed(case: Case, options: &RunOptions) -> Command {
    let cores = format!("0-{}", case.workers() - 1);
    let seconds = SECONDS_MAX_OVER + 10 * options.seconds();
    let mut command = Command::new("taskset");
    command.args(["-c", &cores, "timeout", "--kill-after=5"]);
    command.arg(seconds.to_string());
    command
}

fn with_options(mut command: Command, case: Case, options: &RunOptions) -> Command {
    let [case, milliseconds, actors] = plain(case, options);
    command.args([
        "--case",
        &case,
        "--milliseconds",
        &milliseconds,
        "--actors",
        &actors,
    ]);
    command
}

/// Case, milliseconds, actors.
fn plain(case: Case, options: &RunOptions) -> [String; 3] {
    let actors = if options.quick { QUICK_ACTORS } else { ACTORS };
    let milliseconds = options.seconds() * MILLIS_PER_SECOND;
    [case.name(), milliseconds.to_string(), actors.to_string()]
}

fn start(mut command: Command) -> anyhow::Result<Outcome> {
    let finished = run(&mut command)?;
    let line = finished.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("not an outcome: {line:?}"))
}
