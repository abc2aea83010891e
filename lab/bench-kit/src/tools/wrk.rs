//! wrk: closed loop over keep-alive connections.

use std::path::PathBuf;

use anyhow::{Context, ensure};

use super::{Finished, run};
use crate::measure::ChildrenCpu;
use crate::process::{LOAD_CORE, pinned};

/// One run of wrk, with one thread.
#[derive(Clone, Debug)]
pub struct Wrk {
    /// Connections, each with one request in flight.
    pub connections: u32,
    /// Seconds of load.
    pub seconds: u32,
    /// A script in Lua, if any.
    pub script: Option<PathBuf>,
}

/// The report of a run of wrk.
#[derive(Clone, Debug)]
pub struct WrkReport {
    /// Responses.
    pub requests: u64,
    /// CPU time of wrk itself.
    pub cpu: ChildrenCpu,
    /// The output of wrk and its script.
    pub text: String,
}

impl Wrk {
    /// Runs to its end; every response must be a good one.
    ///
    /// # Errors
    /// If wrk fails or reports errors.
    pub fn run(&self, url: &str) -> anyhow::Result<WrkReport> {
        let mut command = pinned(LOAD_CORE, "wrk");
        command.args([
            "-t1",
            &format!("-c{}", self.connections),
            &format!("-d{}s", self.seconds),
        ]);
        if let Some(script) = &self.script {
            command.arg("-s").arg(script);
        }
        let Finished { stdout, cpu } = run(command.arg(url))?;
        Ok(WrkReport {
            requests: answered(&stdout)?,
            cpu,
            text: stdout,
        })
    }
}

fn answered(output: &str) -> anyhow::Result<u64> {
    for trouble in ["Socket errors", "Non-2xx"] {
        ensure!(!output.contains(trouble), "wrk reports errors:\n{output}");
    }
    let count = output
        .lines()
        .find_map(|line| line.split_once(" requests in "))
        .map(|(count, _)| count.trim());
    count
        .with_context(|| format!("wrk counted no requests:\n{output}"))?
        .parse()
        .context("wrk's count")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_in_the_report_are_errors() {
        assert_eq!(
            answered("  375 requests in 3.00s, 4MB read\n").expect("a clean report"),
            375
        );
        assert!(
            answered("  375 requests in 3.00s, 4MB read\n  Non-2xx or 3xx responses: 1\n").is_err()
        );
        assert!(answered("").is_err());
    }
}
