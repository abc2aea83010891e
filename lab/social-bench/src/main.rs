//! `make bench-social`: the social network of `apps/social` under load.

mod args;
mod cases;
mod feed;
mod goals;
mod load;
mod site;

use anyhow::Context as _;
use bench_kit::tools::require;
use bench_kit::{Binaries, Run};
use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::args::Args;
use crate::cases::Context;
use crate::goals::Goals;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    require(["taskset"])?;
    raise_descriptors()?;
    let mut binaries = Binaries::default();
    // The load generator.
    binaries.build_greenroom()?;
    binaries.build_program("social", "social")?;
    let context = Context::new(&args, binaries)?;
    let mut run = Run::begin("social", "The social network under load")?;
    let mut goals = Goals::default();
    for case in args.cases() {
        let report = case
            .run(&context)
            .with_context(|| format!("case {}", case.name()))?;
        goals.note(&report)?;
        run.add(report);
    }
    run.add(goals.report());
    run.store(&args.run)
}

/// Raises the limit of descriptors: thousands of clients live in this process, and their
/// connections in a server that it starts.
fn raise_descriptors() -> anyhow::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("limit of descriptors")?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("limit of descriptors")
}
