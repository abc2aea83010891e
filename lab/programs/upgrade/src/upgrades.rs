//! The upgrades of a server, one after the other.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::{Args, value_parser};
use procfs::process::all_processes;

use crate::Figures;

/// The longest time of an upgrade, as `timeout` takes it.
const SECONDS_MAX: &str = "180";

#[derive(Clone, Debug, Args)]
pub(crate) struct Upgrades {
    /// A shell's command that ends well once the server is upgraded
    #[arg(long)]
    upgrade: String,
    /// A command after the last upgrade, which must end well, too
    #[arg(long, default_value = "true")]
    finish: String,
    /// Number of upgrades
    #[arg(long = "upgrades", value_parser = value_parser!(u32).range(1..=1000))]
    count: u32,
    /// Seconds in which upgrades are begun: a server that needs longer gets fewer
    #[arg(long, default_value_t = 420, value_parser = value_parser!(u64).range(1..=3600))]
    seconds_max: u64,
    /// Milliseconds from the end of an upgrade to the next one
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u64).range(..=60_000))]
    pause_millis: u64,
    /// The server's group of processes
    #[arg(long)]
    group: i32,
}

impl Upgrades {
    /// Upgrades a server; returns how often, from the first upgrade to the end of the last one in
    /// how many seconds, and how many processes it had at most.
    ///
    /// # Errors
    /// If a command fails or takes too long.
    pub(crate) fn run(&self) -> anyhow::Result<Figures> {
        let begin = Instant::now();
        let (mut upgrades, mut seconds, mut processes) = (0, 0.0, 0);
        while upgrades < self.count && begin.elapsed().as_secs() < self.seconds_max {
            upgrades += 1;
            run(&self.upgrade).with_context(|| format!("upgrade {upgrades}"))?;
            seconds = begin.elapsed().as_secs_f64();
            processes = processes.max(self.processes()?);
            thread::sleep(Duration::from_millis(self.pause_millis));
        }
        run(&self.finish).context("after the last upgrade")?;
        let figures = [
            ("upgrades", upgrades.into()),
            ("seconds", seconds),
            ("processes", processes.into()),
        ];
        Ok(figures.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Counts the server's processes that have not ended.
    fn processes(&self) -> anyhow::Result<u32> {
        let stats = all_processes()?.filter_map(|process| process.ok()?.stat().ok());
        let own = stats.filter(|stat| stat.pgrp == self.group && !matches!(stat.state, 'Z' | 'X'));
        Ok(u32::try_from(own.count())?)
    }
}

fn run(command: &str) -> anyhow::Result<()> {
    let output = Command::new("timeout")
        .args([SECONDS_MAX, "sh", "-c", command])
        .output()
        .context("timeout")?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let status = output.status;
    ensure!(status.success(), "`{command}`: {status}: {}", text.trim());
    Ok(())
}
