//! `make bench-http`: Greenroom beside the physical limit and its peers, one thread each, in CPU time per request.

mod args;
mod binaries;
mod cases;
mod goal;
mod machine;
mod measure;
mod process;
mod report;
mod stats;
mod table;
mod tools;

use anyhow::Context as _;
use clap::Parser;

use crate::args::Args;
use crate::binaries::Binaries;
use crate::cases::Context;
use crate::report::Run;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let cases = args.cases();
    tools::require(&cases)?;
    let with_demo = cases.iter().any(|case| case.needs_demo());
    let binaries = Binaries::build(args.peers_only, with_demo)?;
    let context = Context::new(&args, binaries);
    let mut run = Run::new(machine::describe()?);
    println!("{}\n", run.machine);
    for case in cases {
        let report = case
            .run(&context)
            .with_context(|| format!("case {}", case.name()))?;
        println!("{report}");
        run.reports.push(report);
    }
    run.store(&args)
}
