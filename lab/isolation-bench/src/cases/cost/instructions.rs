//! Instructions per request, counted by valgrind: without the noise of a clock, and blind to what
//! an instruction costs.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use bench_kit::process::{Launch, Server};
use bench_kit::tools::GreenroomBench;

use crate::cases::{Context, HELLO};
use crate::contestant::Contestant;

/// The difference of two runs is free of start and warm-up.
const FEW_REQUESTS: u64 = 2_000;
const MANY_REQUESTS: u64 = 12_000;
const CONNECTIONS: u32 = 1;

/// Of each contestant that does not run a second time.
pub(super) fn count(
    contestants: &[Contestant],
    context: &Context,
) -> anyhow::Result<Vec<(String, f64)>> {
    let mut counted = Vec::new();
    for contestant in contestants {
        let name = bench_kit::rounds::Contestant::name(contestant);
        if name.ends_with(bench_kit::rounds::AGAIN) {
            continue;
        }
        eprintln!("cost, instructions: {name}");
        let each = each(contestant, context).with_context(|| name.to_owned())?;
        counted.push((name.to_owned(), each));
    }
    Ok(counted)
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn each(contestant: &Contestant, context: &Context) -> anyhow::Result<f64> {
    let few = of_run(contestant, FEW_REQUESTS, context)?;
    let many = of_run(contestant, MANY_REQUESTS, context)?;
    Ok(many.saturating_sub(few) as f64 / (MANY_REQUESTS - FEW_REQUESTS) as f64)
}

fn of_run(contestant: &Contestant, requests: u64, context: &Context) -> anyhow::Result<u64> {
    let log = Log::new();
    let server = start(contestant, &log, context)?;
    let bench = GreenroomBench::new(&context.binaries)?.flags(["-k"]);
    bench
        .connections(requests, CONNECTIONS)
        .run_well(&server.url(HELLO))?;
    server.terminate()?;
    log.instructions()
}

fn start(contestant: &Contestant, log: &Log, context: &Context) -> anyhow::Result<Server> {
    let log = format!("--log-file={}", log.0.display());
    let flags = [
        "--tool=cachegrind",
        "--cache-sim=no",
        "--cachegrind-out-file=/dev/null",
        &log,
    ];
    let launch = Launch::new("valgrind").arguments(flags);
    launch.arguments(contestant.command(context)?).start()
}

/// The output of valgrind; the file is removed with this value.
struct Log(PathBuf);

impl Log {
    fn new() -> Self {
        let name = format!("greenroom-lab-{}.valgrind", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn instructions(&self) -> anyhow::Result<u64> {
        let text = fs::read_to_string(&self.0).with_context(|| self.0.display().to_string())?;
        total(&text).with_context(|| format!("valgrind counted nothing:\n{text}"))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // It is not there if valgrind could not be started.
        let _ = fs::remove_file(&self.0);
    }
}

fn total(text: &str) -> Option<u64> {
    let line = text.lines().rfind(|line| line.contains("refs:"))?;
    let digits: String = line
        .split_once("refs:")?
        .1
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped_in_its_log() {
        assert_eq!(
            total("==7== \n==7== I refs:        1,234,567\n"),
            Some(1_234_567)
        );
        assert_eq!(total("==7== nothing\n"), None);
    }
}
