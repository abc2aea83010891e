//! `make bench-actors`: the cost of a message and of an actor, in Greenroom and in other actor
//! libraries.

mod args;
mod contestant;
mod foreign;
mod goals;
mod measured;
mod peer;
mod summary;

use anyhow::Context as _;
use bench_kit::tools::require;
use bench_kit::{Binaries, Run};
use clap::Parser;

use crate::args::Args;
use crate::contestant::contestants;
use crate::measured::Measured;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if args.list {
        return args.print_list();
    }
    require(["taskset"])?;
    let mut binaries = Binaries::default();
    binaries.build_lab(&["actor-bench-programs", "actor-bench-counted"])?;
    let contestants = contestants(&args.peers(), &binaries)?;
    let mut run = Run::begin("actors", "Actor benchmark")?;
    let mut all = Vec::new();
    for case in args.cases() {
        let measured = Measured::of(case, &contestants, &args.run)
            .with_context(|| format!("case {}", case.name()))?;
        run.add(measured.report(args.run.rounds()));
        all.push(measured);
    }
    run.add(summary::report(&all, &contestants));
    run.store(&args.run)
}
