//! Overload at three levels of niceness of stage threads, relative to the loops.

use std::fs;
use std::process::Command;

use bench_kit::Report;
use bench_kit::process::Server;
use bench_kit::rounds::{Contestant as _, Row, interleave, samples};
use bench_kit::{cell, table, tools};

use super::Context;
use super::overload::{Capacity, FLOOD_COLUMNS, Flood, flood_cells};
use crate::contestant::{self, Contestant};

const ROUNDS_MAX: usize = 2;
const FACTOR: f64 = 10.0;
const LEVELS: [&str; 3] = ["0", "10", "19"];

/// Greenroom with its stage threads at a niceness.
struct Nice {
    name: String,
    server: Contestant,
    niceness: &'static str,
}

impl bench_kit::rounds::Contestant for Nice {
    fn name(&self) -> &str {
        &self.name
    }
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let at = |niceness: &'static str| {
        let server = Contestant::ours();
        let name = format!("{}, stage at {niceness}", server.name());
        Nice {
            name,
            server,
            niceness,
        }
    };
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("niceness", rounds, &LEVELS.map(at), |nice| {
        measure(nice, context)
    })?;
    Ok(Report {
        case: "niceness",
        title: format!("overload at {FACTOR} x capacity, stage threads at niceness 0, 10, 19"),
        notes: vec![
            format!(
                "medians of {rounds} rounds (least–most) as in overload; {} as it is, its threads \
                    stage-0, stage-1 … moved by renice",
                contestant::OURS
            ),
            context.note(),
            "a statement, without a goal".to_owned(),
        ],
        table: render(&rows),
        verdicts: Vec::new(),
        samples: samples(&rows),
    })
}

fn measure(nice: &Nice, context: &Context) -> anyhow::Result<Flood> {
    let server = nice.server.start(context)?;
    context.warm_up(&server)?;
    renice(&server, nice.niceness)?;
    let capacity = Capacity::measure(context, &server)?;
    Flood::measure(context, &server, &capacity, FACTOR)
}

fn renice(server: &Server, niceness: &str) -> anyhow::Result<()> {
    for task in fs::read_dir(format!("/proc/{}/task", server.pid()))? {
        let task = task?;
        let name = fs::read_to_string(task.path().join("comm"))?;
        if is_worker(name.trim_end()) {
            let mut renice = Command::new("renice");
            tools::run(renice.args(["-n", niceness, "-p"]).arg(task.file_name()))?;
        }
    }
    Ok(())
}

/// Returns true if a thread of this name runs handlers; the controller does not.
fn is_worker(name: &str) -> bool {
    let number = name.strip_prefix("stage-").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn render(rows: &[Row<Flood>]) -> String {
    let mut out = table(FLOOD_COLUMNS.into_iter().chain(["refused p99 ms"]));
    for row in rows {
        let refused = cell(row.spread(|flood| flood.refused_p99_ms), 1);
        out.add_row(flood_cells(row).into_iter().chain([refused]));
    }
    out.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_threads_that_run_handlers_are_moved() {
        assert!(is_worker("stage-0") && is_worker("stage-12"));
        assert!(!is_worker("stage-control") && !is_worker("stage-") && !is_worker("greenroom"));
    }
}
