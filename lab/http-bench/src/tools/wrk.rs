//! wrk: closed loop over 64 keep-alive connections.

use anyhow::{Context, ensure};

use super::run;
use crate::binaries::lab_directory;
use crate::process::{LOAD_CORE, pinned};

const CONNECTIONS: u32 = 64;

/// One run of wrk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrk {
    pub(crate) seconds: u32,
    /// Requests sent together; 1 is no pipelining.
    pub(crate) pipelined: u32,
}

impl Wrk {
    /// Runs to its end; the number of answered requests.
    pub(crate) fn run(self, url: &str) -> anyhow::Result<u64> {
        let mut command = pinned(LOAD_CORE, "wrk");
        command.args([
            "-t1",
            &format!("-c{CONNECTIONS}"),
            &format!("-d{}s", self.seconds),
        ]);
        if self.pipelined > 1 {
            command
                .arg("-s")
                .arg(lab_directory().join("scripts/pipeline.lua"));
        }
        command.arg(url);
        if self.pipelined > 1 {
            command.args(["--", &self.pipelined.to_string()]);
        }
        answered(&run(&mut command)?)
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
