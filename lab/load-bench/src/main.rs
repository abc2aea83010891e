//! `make bench-load`: the cost of `greenroom bench` beside wrk and ab, and the accuracy of its
//! latencies.

mod args;
mod cases;

use anyhow::Context as _;
use bench_kit::tools::require;
use bench_kit::{Binaries, Run};
use clap::Parser;

use crate::args::Args;
use crate::cases::Context;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let cases = args.cases();
    require(cases.iter().flat_map(|case| case.tools()).copied())?;
    let mut binaries = Binaries::default();
    binaries.build_lab(&["http-bench-peers", "load-bench-programs"])?;
    binaries.build_greenroom()?;
    let context = Context::new(&args, binaries);
    let mut run = Run::begin("load", "Load generator benchmark")?;
    for case in cases {
        let report = case
            .run(&context)
            .with_context(|| format!("case {}", case.name()))?;
        run.add(report);
    }
    run.store(&args.run)
}
