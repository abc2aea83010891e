//! Runs a contestant's client, and counts the CPU of all its processes meanwhile.
//!
//! Between a line `begin NAME` of the client and its `end NAME COUNT`, CPU time and the growth of
//! memory are counted, over that number; a byte tells the client each time that it may go on.
//! `kill PID` kills a process of the contestant at once.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use greenroom_load::verdict::Processes;
use procfs::process::all_processes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value};

/// Counts the CPU of a contestant while its client runs.
#[derive(Debug, Parser)]
struct Options {
    /// The process whose children are the broker and the nodes
    server: i32,
    #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
    client: Vec<String>,
}

fn main() -> anyhow::Result<()> {
    let Options { server, client } = Options::parse();
    let mut child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .args(&client)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", client.join(" ")))?;
    let mut go_on = child.stdin.take().context("no input")?;
    let mut figures = Map::new();
    let (mut window, mut last) = (None, String::new());
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let line = line?;
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["begin", _] => {
                window = Some(Window::begin(server, child.id())?);
                go_on.write_all(b"\n")?;
            }
            ["end", name, count] => {
                let ended = window.take().context("an end without a begin")?;
                figures.extend(ended.end(name, count.parse()?));
                go_on.write_all(b"\n")?;
            }
            ["kill", pid] => {
                let pid = Pid::from_raw(pid.parse()?).context("no process")?;
                kill_process(pid, Signal::KILL)?;
            }
            _ => last = line,
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "{} ended with {status}", client.join(" "));
    let Value::Object(own) = serde_json::from_str(&last).context(last)? else {
        bail!("the last line is no object");
    };
    figures.extend(own);
    println!("{}", Value::Object(figures));
    Ok(())
}

/// The processes of a contestant, by what they are for.
struct Window([(&'static str, Vec<Metered>); 3]);

struct Metered {
    processes: Processes,
    rss_bytes: u64,
}

impl Window {
    fn begin(server: i32, client: u32) -> anyhow::Result<Self> {
        let (mut broker, mut nodes) = (Vec::new(), Vec::new());
        for process in all_processes()?.flatten() {
            let Ok(stat) = process.stat() else { continue };
            if stat.ppid == server {
                let is_broker = stat.comm == "nats-server";
                let kind = if is_broker { &mut broker } else { &mut nodes };
                kind.extend(Metered::begin(stat.pid.unsigned_abs()));
            }
        }
        let client = Metered::begin(client).into_iter().collect();
        Ok(Self([
            ("client", client),
            ("broker", broker),
            ("node", nodes),
        ]))
    }

    fn end(self, name: &str, count: f64) -> Vec<(String, Value)> {
        let mut figures = Vec::new();
        let mut all = 0.0;
        for (kind, metered) in self.0.into_iter().filter(|(_, all)| !all.is_empty()) {
            let ended: Vec<_> = metered.into_iter().map(Metered::end).collect();
            let cpu_us = ended.iter().map(|(cpu_us, _)| cpu_us).sum::<f64>() / count;
            let bytes = ended.iter().map(|(_, bytes)| bytes).sum::<f64>() / count;
            all += cpu_us;
            figures.push((format!("{name}_{kind}_us"), cpu_us.into()));
            figures.push((format!("{name}_{kind}_bytes"), bytes.into()));
        }
        figures.push((format!("{name}_cpu_us"), all.into()));
        figures
    }
}

impl Metered {
    fn begin(pid: u32) -> Option<Self> {
        let mut processes = Processes::of(pid)?;
        processes.sample();
        let rss_bytes = processes.usage().rss_bytes_max;
        Some(Self {
            processes,
            rss_bytes,
        })
    }

    /// Returns CPU time in microseconds, and by how many bytes memory grew.
    #[expect(clippy::cast_precision_loss, reason = "memory of this machine")]
    fn end(mut self) -> (f64, f64) {
        self.processes.sample();
        let usage = self.processes.usage();
        let cpu = (usage.user + usage.system).as_secs_f64() * 1e6;
        (cpu, (usage.rss_bytes_max - self.rss_bytes) as f64)
    }
}
