//! Opens keep-alive connections, lets each have one answer, and holds them until standard input ends.

use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use clap::Parser;
use http_bench_load::{Engine, Outcome, Target, print_line};
use serde_json::json;

/// Below the shortest backlog that a server might have.
const UNANSWERED_MAX: u32 = 64;
const SECONDS_MAX: u64 = 30;

#[derive(Debug, Parser)]
struct Options {
    /// <http://127.0.0.1:PORT/PATH>
    #[arg(long)]
    url: Target,
    /// How many connections
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=19_900))]
    connections: u32,
    /// Client addresses 127.0.0.2, .3, … to spread them over, when one has too few ports
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100))]
    sources: u8,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let mut engine = Engine::new(&options.url)?;
    let answered = open_all(&mut engine, &options)?;
    let held = engine.connections();
    ensure!(
        held == options.connections as usize,
        "the server closed all but {held} connections"
    );
    print_line(&json!({ "answered": answered, "held": held }))?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn open_all(engine: &mut Engine, options: &Options) -> anyhow::Result<u32> {
    let deadline = Instant::now() + Duration::from_secs(SECONDS_MAX);
    let (mut opened, mut answered) = (0, 0);
    let mut outcomes = Vec::new();
    while answered < options.connections {
        while opened < options.connections && opened - answered < UNANSWERED_MAX {
            engine.open(Some(source(opened, options.sources)), Instant::now())?;
            opened += 1;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        ensure!(
            !left.is_zero(),
            "{answered} of {} answered after {SECONDS_MAX} s",
            options.connections
        );
        engine.wait(left, &mut outcomes)?;
        for outcome in outcomes.drain(..) {
            match outcome {
                Outcome::Answered { .. } => answered += 1,
                Outcome::Failed(error) => return Err(error),
                Outcome::IdleClosed(_) => bail!("the server closed an idle connection"),
            }
        }
    }
    Ok(answered)
}

fn source(index: u32, sources: u8) -> Ipv4Addr {
    let step = u8::try_from(index % u32::from(sources)).expect("less than `sources`");
    Ipv4Addr::new(127, 0, 0, 2 + step)
}
