//! `make bench-upgrade`: servers that are upgraded again and again under load, and the requests
//! that fail meanwhile.

mod args;
mod client;
mod counts;
mod measure;
mod report;
mod server;
mod upstream;

use std::path::PathBuf;

use bench_kit::{Binaries, Run};
use clap::Parser;

use crate::args::Args;
use crate::measure::{Measured, measure};
use crate::server::Contestant;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let (here, missing): (Vec<Contestant>, Vec<_>) = args
        .contestants()
        .into_iter()
        .partition(|contestant| contestant.is_here());
    let greenroom = greenroom(&args, &here)?;
    let (plan, kinds) = (args.plan(), args.kinds());
    let upstream = upstream::start()?;
    let mut run = Run::begin("upgrade", "Upgrades under load")?;
    let mut all: Vec<Measured> = Vec::new();
    for contestant in here {
        let measured = measure(contestant, &kinds, plan, upstream, &greenroom);
        report::progress(&measured);
        all.push(measured);
    }
    for report in report::reports(&all, &kinds, plan, &missing) {
        run.add(report);
    }
    let size = format!("up to {} upgrades of each server", plan.upgrades);
    run.keep(&args.keep, &size)
}

fn greenroom(args: &Args, contestants: &[Contestant]) -> anyhow::Result<PathBuf> {
    if let Some(path) = &args.greenroom {
        return Ok(path.canonicalize()?);
    }
    let mut binaries = Binaries::default();
    if !contestants.iter().any(|contestant| contestant.is_ours()) {
        return Ok(PathBuf::new());
    }
    binaries.build_greenroom()?;
    Ok(binaries.path("greenroom")?.to_owned())
}
