//! `make bench-isolation`: the delay of fast requests by slow ones in Greenroom, axum, Node, Go and
//! Starman.

mod args;
mod cases;
mod client;
mod contestant;
mod http;
mod rivals;
mod status;

use anyhow::Context as _;
use bench_kit::tools::{is_installed, require};
use bench_kit::{Binaries, Run};
use clap::Parser;

use crate::args::Args;
use crate::cases::Context;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    require(["taskset"])?;
    let mut binaries = Binaries::default();
    binaries.build_lab(&["isolation-bench-programs"])?;
    // It is a contestant, and makes load, too.
    binaries.build_greenroom()?;
    if !args.ours_only && is_installed("go") {
        contestant::build_go(&mut binaries)?;
    }
    let context = Context::new(&args, binaries)?;
    let mut run = Run::begin("isolation", "Isolation benchmark")?;
    for case in args.cases() {
        let report = case
            .run(&context)
            .with_context(|| format!("case {}", case.name()))?;
        run.add(report);
    }
    run.store(&args.run)
}
