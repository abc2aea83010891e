//! h2load: closed loop over HTTP/2.

use anyhow::{Context, ensure};

use super::run;
use crate::process::{LOAD_CORE, pinned};

/// One run of h2load, with one thread.
#[derive(Clone, Copy, Debug)]
pub struct H2load {
    /// Connections.
    pub connections: u32,
    /// Requests in flight on each.
    pub streams: u32,
    /// Seconds of load.
    pub seconds: u32,
}

impl H2load {
    /// Runs to its end; returns the number of requests that got their responses, each of which must
    /// be with 200 to 299, and over HTTP/2.
    ///
    /// # Errors
    /// If h2load fails or reports failures.
    pub fn run(&self, url: &str) -> anyhow::Result<u64> {
        let mut command = pinned(LOAD_CORE, "h2load");
        command.args([
            &format!("-c{}", self.connections),
            &format!("-m{}", self.streams),
            &format!("-D{}", self.seconds),
        ]);
        answered(&run(command.arg(url))?.stdout)
    }
}

fn answered(output: &str) -> anyhow::Result<u64> {
    ensure!(
        output
            .lines()
            .any(|line| line == "Application protocol: h2"),
        "h2load did not speak HTTP/2:\n{output}"
    );
    let counts = [
        ("requests: ", [" failed", " errored", " timeout"]),
        ("status codes: ", [" 3xx", " 4xx", " 5xx"]),
    ];
    for (label, troubles) in counts {
        for trouble in troubles {
            let count = number_before(output, label, trouble)?;
            ensure!(count == 0, "h2load reports failures:\n{output}");
        }
    }
    // Those `done` are fewer: what gets its response when the time is over is not among them.
    number_before(output, "status codes: ", " 2xx")
}

/// Returns the number before `unit` in the line that begins with `label`.
fn number_before(output: &str, label: &str, unit: &str) -> anyhow::Result<u64> {
    let mut lines = output.lines();
    let counts = lines.find_map(|line| line.strip_prefix(label));
    let mut counts = counts.into_iter().flat_map(|counts| counts.split(", "));
    let count = counts.find_map(|count| count.strip_suffix(unit));
    count
        .with_context(|| format!("h2load does not say {unit:?}:\n{output}"))?
        .parse()
        .context("h2load's number")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "Application protocol: h2\n\nfinished in 1.01s, 22306.00 req/s\n\
        requests: 22306 total, 22434 started, 22306 done, 22306 succeeded, 0 failed, 0 errored, \
        0 timeout\nstatus codes: 22310 2xx, 0 3xx, 0 4xx, 0 5xx\n";

    #[test]
    fn responses_are_counted() {
        assert_eq!(answered(REPORT).expect("a clean report"), 22_310);
    }

    #[test]
    fn failures_in_the_report_are_errors() {
        assert!(answered(&REPORT.replace(" 0 failed", " 1 failed")).is_err());
        assert!(answered(&REPORT.replace("0 5xx", "1 5xx")).is_err());
        assert!(answered(&REPORT.replace("protocol: h2", "protocol: http/1.1")).is_err());
        assert!(answered("").is_err());
    }
}
