//! The program `lab`: experiments that are declared in files, run beside real systems, and kept as
//! data.

mod builds;
mod check;
mod declare;
mod figures;
mod load;
mod machine;
mod plots;
mod report;
mod result;
mod round;
mod run;
mod summary;
mod tables;
mod verdict;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use greenroom_load::run::Stop;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::declare::Experiment;

/// The descriptors that this program and each that it starts may have, if the system allows it.
const DESCRIPTORS: u64 = 20_000;

/// Runs experiments that compare servers, and keeps their results
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    /// The experiments to run, or `all`; without any, they are listed
    pub(crate) experiments: Vec<String>,
    /// One round of one second: to see that everything works, not to quote
    #[arg(long)]
    pub(crate) quick: bool,
    /// Interleaved rounds instead of the experiment's number
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) rounds: Option<u32>,
    /// Only cases whose names begin so (may be repeated)
    #[arg(long, value_name = "CASE")]
    pub(crate) only: Vec<String>,
    /// Only these contestants (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) contestant: Vec<String>,
    /// Takes a program instead of building it (may be repeated)
    #[arg(long, value_name = "NAME=PATH", value_parser = program)]
    pub(crate) program: Vec<(String, String)>,
    /// The folder of results [default: lab/results; of quick and of partial runs target/lab]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) results: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    allow_descriptors();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Raises the limit of descriptors, where it is lower.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit
        .maximum
        .map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            ..limit
        };
        // What then fails for want of descriptors says so.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Lets a signal end the load, and all that was started, instead of the lab alone.
fn stop_on_signals() -> anyhow::Result<Stop> {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.flag())?;
    }
    Ok(stop)
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let known = experiments()?;
    if args.experiments.is_empty() {
        for (name, path) in &known {
            println!("{name:<12} {}", Experiment::read(path)?.question);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let stop = stop_on_signals()?;
    let mut all_went_well = true;
    for (name, path) in chosen(&known, &args.experiments)? {
        let experiment = Experiment::read(path)?;
        for contestant in &args.contestant {
            ensure!(
                experiment.contestants.contains_key(contestant),
                "{name} has no contestant {contestant:?}, only {}",
                experiment.names().join(", ")
            );
        }
        let (outcome, streams) = run::experiment(name, &experiment, args, &stop)?;
        ensure!(!stop.is_stopped(), "interrupted: {name} writes no result");
        let directory = results(args);
        report::write(&directory, &experiment, &outcome, &streams)?;
        all_went_well &= outcome
            .failures()
            .inspect(|line| eprintln!("lab: {line}"))
            .count()
            == 0;
        eprintln!(
            "wrote {}",
            directory.join(name).with_extension("md").display()
        );
    }
    Ok(if all_went_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the experiments by name, in order.
fn experiments() -> anyhow::Result<Vec<(String, PathBuf)>> {
    let directory = words::lab().join("experiments");
    let mut known = Vec::new();
    for entry in directory.read_dir().context("lab/experiments")? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
            && let Some(name) = path.file_stem()
        {
            known.push((name.to_string_lossy().into_owned(), path));
        }
    }
    known.sort();
    Ok(known)
}

fn chosen<'a>(
    known: &'a [(String, PathBuf)],
    asked: &[String],
) -> anyhow::Result<Vec<(&'a str, &'a Path)>> {
    let all = || {
        known
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_path()))
    };
    if asked == ["all"] {
        return Ok(all().collect());
    }
    let find = |name: &String| {
        let found = all().find(|(known, _)| known == name);
        found.with_context(|| {
            let names: Vec<_> = all().map(|(name, _)| name).collect();
            format!("there is no experiment {name:?}, only {}", names.join(", "))
        })
    };
    asked.iter().map(find).collect()
}

fn program(text: &str) -> Result<(String, String), String> {
    let (name, path) = text.split_once('=').ok_or("it is written NAME=PATH")?;
    if !Path::new(path).is_file() {
        return Err(format!("{path:?} is no file"));
    }
    Ok((name.to_owned(), path.to_owned()))
}

fn results(args: &Args) -> PathBuf {
    let is_partial = args.quick || !args.only.is_empty() || !args.contestant.is_empty();
    match &args.results {
        Some(directory) => directory.clone(),
        None if is_partial => words::lab().join("target/lab"),
        None => words::lab().join("results"),
    }
}
