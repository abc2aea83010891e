//! `make bench-psgi`: Perl applications behind Greenroom, beside Twiggy, Feersum, Starman and
//! Starlet.

mod args;
mod cases;
mod contestant;
mod installed;
mod peer;

use anyhow::Context as _;
use bench_kit::tools::require;
use bench_kit::{Binaries, Run};
use clap::Parser;

use crate::args::Args;
use crate::cases::Context;
use crate::installed::Installed;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    require(["taskset"])?;
    let installed = Installed::look(args.feersum_lib.as_deref())?;
    let mut binaries = Binaries::default();
    // It generates the load, too.
    binaries.build_greenroom()?;
    let context = Context::new(&args, binaries, installed);
    let mut run = Run::begin("psgi", "PSGI benchmark")?;
    for case in args.cases() {
        let report = case
            .run(&context)
            .with_context(|| format!("case {}", case.name()))?;
        run.add(report);
    }
    run.store(&args.run)
}
