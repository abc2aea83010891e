//! `make bench-http` and `make bench-edge`: Greenroom beside the physical limit and its peers, one
//! thread each, in CPU time per request.

mod args;
mod cases;
mod idle_client;

use anyhow::Context as _;
use bench_kit::tools::{is_installed, require};
use bench_kit::{Binaries, Run, lab_directory};
use clap::Parser;

use crate::args::Args;
use crate::cases::{Case, Context, drain};

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let cases = args.cases();
    require(cases.iter().flat_map(|case| case.tools()).copied())?;
    let context = Context::new(&args, build(args.peers_only, &cases)?);
    let mut run = if args.edge {
        Run::begin("edge", "Edge benchmark: TLS, files, forwarding")?
    } else {
        Run::begin("http", "HTTP benchmark")?
    };
    for case in cases {
        let report = case
            .run(&context)
            .with_context(|| format!("case {}", case.name()))?;
        run.add(report);
    }
    run.store(&args.run)
}

fn build(peers_only: bool, cases: &[Case]) -> anyhow::Result<Binaries> {
    let mut binaries = Binaries::default();
    binaries.build_lab(&["http-bench-clients", "http-bench-peers"])?;
    if !peers_only {
        binaries.build_lab(&["http-bench-ours"])?;
    }
    if cases.contains(&Case::Drain) && is_installed("go") {
        let source = lab_directory().join("http-bench/standins/drain.go");
        binaries.build_go(drain::GO_PROGRAM, &source, "upstream")?;
    }
    if cases.iter().any(|case| case.needs_greenroom()) {
        binaries.build_greenroom()?;
    }
    Ok(binaries)
}
