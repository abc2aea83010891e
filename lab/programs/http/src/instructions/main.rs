//! Instructions of a request, as callgrind counts them in servers on one thread: what a clock on a
//! shared machine cannot show, exact to a few parts in a thousand, and blind to what one costs.
//!
//! Each number is the difference of two runs of a fresh server, over the difference of their
//! requests, so that start and warm-up are in neither. The kernel's instructions are not counted.

mod baseline;
mod cases;
mod counting;
mod load;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::ensure;
use clap::Parser;

use crate::baseline::{Baseline, Change};
use crate::cases::{CASES, Case};

/// Counts the instructions of a request of Greenroom and of its peers, and compares Greenroom's
/// with the baseline. A case over 5 % above it ends the program with status 1, if the baseline was
/// counted with this valgrind and this compiler
#[derive(Debug, Parser)]
struct Options {
    /// Writes what was counted as the new baseline
    #[arg(long)]
    update: bool,
    /// Only cases whose names begin so (may be repeated)
    #[arg(long, value_name = "CASE")]
    only: Vec<String>,
    /// Leaves the peers out
    #[arg(long)]
    alone: bool,
    /// The baseline [default: lab/instructions.json]
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// The program http-server [default: the one beside this]
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("http-instructions: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let tools = counting::tools()?;
    let server = options.server.clone().map_or_else(server_beside, Ok)?;
    let path = options.baseline.clone().unwrap_or_else(baseline_of_lab);
    let mut baseline = Baseline::read(&path)?;
    let chosen: Vec<_> = CASES
        .iter()
        .filter(|case| is_chosen(case, options))
        .collect();
    ensure!(!chosen.is_empty(), "no such case, only {}", cases::names());
    println!("{tools}, instructions of a request outside the kernel");
    let others = baseline.counted_with_others(&tools).map(str::to_owned);
    if let Some(others) = &others {
        println!("the baseline was counted with {others}: what differs is told, and does not fail");
    }
    println!(
        "{:<16} {:>10} {:>10}  {:<22} {:>6} {:>10} {:>8}",
        "case", "Greenroom", "peer", "", "ratio", "baseline", "change"
    );
    let mut is_too_much = false;
    for case in chosen {
        let ours = count_ours(&server, case, &baseline)?;
        let peer = || counting::count(&server, case.peer, &case.load);
        let peer = (!options.alone).then(peer).transpose()?;
        let change = baseline.change(case.name, ours);
        println!("{}", row(case, ours, peer, change));
        is_too_much |= change.is_none_or(|change| others.is_none() && change.is_too_much());
        baseline.put(case.name, ours);
    }
    if options.update {
        baseline.write(&path, &tools)?;
        println!("wrote {}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    if is_too_much {
        eprintln!(
            "http-instructions: FAILED: a case is more than {} % above {}, or not in it; if it has \
             to be, `make bench-instructions ARGS=--update` writes a new one",
            baseline::TOO_MUCH_PERCENT,
            path.display()
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts a case, and once more if it is too much: on a machine that has much to do, routes move.
fn count_ours(server: &Path, case: &Case, baseline: &Baseline) -> anyhow::Result<f64> {
    let count = || counting::count(server, case.ours, &case.load);
    let first = count()?;
    let change = baseline.change(case.name, first);
    if change.is_some_and(Change::is_too_much) {
        return Ok(count()?.min(first));
    }
    Ok(first)
}

fn is_chosen(case: &Case, options: &Options) -> bool {
    let mut only = options.only.iter();
    options.only.is_empty() || only.any(|begin| case.name.starts_with(begin))
}

fn row(case: &Case, ours: f64, peer: Option<f64>, change: Option<Change>) -> String {
    let Case { name, .. } = case;
    let beside = match peer {
        Some(peer) => {
            let ratio = ours / peer;
            format!("{peer:>10.0}  {:<22} {ratio:>6.2}", case.peer.join(" "))
        }
        None => format!("{:>10}  {:<22} {:>6}", "-", "", "-"),
    };
    let change = match change {
        Some(change) => format!("{:>10.0} {change:>8}", change.before),
        None => format!("{:>10} {:>8}", "-", "new"),
    };
    format!("{name:<16} {ours:>10.0} {beside} {change}")
}

fn server_beside() -> anyhow::Result<PathBuf> {
    let path = env::current_exe()?.with_file_name("http-server");
    ensure!(path.is_file(), "{} is not built", path.display());
    Ok(path)
}

fn baseline_of_lab() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../instructions.json")
}
