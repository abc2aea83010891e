//! Our own client that holds connections.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, ensure};
use bench_kit::process::{LOAD_CORE, pinned};

/// Idle connections, held until this value is dropped.
pub(crate) struct Idle(Child);

impl Idle {
    /// Returns once every connection got its response once.
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
