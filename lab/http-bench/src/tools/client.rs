//! Our own clients; each prints JSON lines.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::run;
use crate::process::{LOAD_CORE, pinned};

/// Milliseconds from the start of a request to the end of its answer.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the JSON, where the unit is needed"
)]
pub(crate) struct Latency {
    pub(crate) min_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

/// What `burst` reports.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Burst {
    pub(crate) answered: u32,
    pub(crate) errors: u32,
    pub(crate) first_error: Option<String>,
    pub(crate) peak_waiting: u32,
    pub(crate) took_ms: u32,
    pub(crate) latency: Latency,
}

impl Burst {
    pub(crate) fn run(program: &Path, url: &str, connections: u32) -> anyhow::Result<Self> {
        let mut command = pinned(LOAD_CORE, program);
        command.args(["--url", url, "--connections", &connections.to_string()]);
        last_line(&run(&mut command)?)
    }
}

/// What `openloop` reports.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct OpenLoop {
    pub(crate) offered: u32,
    pub(crate) answered: u32,
    pub(crate) errors: u32,
    pub(crate) first_error: Option<String>,
    pub(crate) missed_sends: u32,
    pub(crate) connections_peak: u32,
    pub(crate) latency: Latency,
    pub(crate) generator_lateness: Latency,
}

impl OpenLoop {
    pub(crate) fn run(program: &Path, url: &str, rate: u32, seconds: u32) -> anyhow::Result<Self> {
        let mut command = pinned(LOAD_CORE, program);
        command.args([
            "--url",
            url,
            "--rate",
            &rate.to_string(),
            "--seconds",
            &seconds.to_string(),
        ]);
        last_line(&run(&mut command)?)
    }
}

fn last_line<'a, T: Deserialize<'a>>(output: &'a str) -> anyhow::Result<T> {
    let line = output
        .lines()
        .last()
        .context("the client printed nothing")?;
    serde_json::from_str(line).with_context(|| format!("the client printed {line:?}"))
}

/// Idle connections, held until this value is dropped.
pub(crate) struct Idle(Child);

impl Idle {
    /// Returns once every connection was answered once.
    pub(crate) fn hold(program: &Path, url: &str, connections: u32) -> anyhow::Result<Self> {
        let mut command = pinned(LOAD_CORE, program);
        command.args([
            "--url",
            url,
            "--connections",
            &connections.to_string(),
            "--sources",
            "4",
        ]);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start idle")?;
        let mut idle = Self(child);
        let mut line = String::new();
        let stdout = idle.0.stdout.take().context("standard output is a pipe")?;
        BufReader::new(stdout)
            .read_line(&mut line)
            .context("idle's output")?;
        ensure!(
            !line.is_empty(),
            "idle could not open {connections} connections"
        );
        Ok(idle)
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to do about a failure here.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
