//! ab: closed loop, by default with a connection for each request.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::{Finished, run};
use crate::measure::ChildrenCpu;
use crate::process::{LOAD_CORE, placed};

/// One run of ab.
#[derive(Clone, Copy, Debug)]
pub struct Ab {
    /// Number of requests; the most, if there is a limit of time.
    pub requests: u64,
    /// Requests in flight at once.
    pub concurrency: u32,
    /// Asks the server to keep connections.
    pub keep_alive: bool,
    /// Ends the run early.
    pub seconds_max: Option<u32>,
    /// Its core; without one it shares them all with the server.
    pub core: Option<usize>,
}

/// The counts of a run of ab that may have failed in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbCounts {
    /// Responses, of any status.
    pub complete: u64,
    /// Responses with a status that is none of 200 to 299.
    pub not_2xx: u64,
    /// Aborted requests, which are among the complete all the same.
    pub broken: u64,
    /// The longest time of a request, in milliseconds.
    pub longest_ms: u32,
}

/// The result of a run of ab; times of whole requests, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct AbReport {
    /// Responses.
    pub requests: u64,
    /// 90 % were served within this time.
    pub p90_ms: u32,
    /// 99 % were served within this time.
    pub p99_ms: u32,
    /// All were served within this time.
    pub longest_ms: u32,
    /// CPU time of ab itself.
    pub cpu: ChildrenCpu,
}

impl Ab {
    /// Creates a run with one connection for each request, without a limit of time.
    #[must_use]
    pub fn new(requests: u64, concurrency: u32) -> Self {
        Self {
            requests,
            concurrency,
            keep_alive: false,
            seconds_max: None,
            core: Some(LOAD_CORE),
        }
    }

    /// Runs to its end; no request may fail, and all must get a response if there is no limit of
    /// time.
    ///
    /// # Errors
    /// If ab fails or reports failures.
    pub fn run(&self, url: &str) -> anyhow::Result<AbReport> {
        self.report(&run(self.command().arg(url))?)
    }

    /// Runs to its end and counts; requests may fail.
    ///
    /// # Errors
    /// If ab fails.
    pub fn count(&self, url: &str) -> anyhow::Result<AbCounts> {
        counts(&run(self.command().arg("-r").arg(url))?.stdout)
    }

    fn command(&self) -> Command {
        let mut command = placed(self.core, Path::new("ab"));
        command.arg("-q");
        if self.keep_alive {
            command.arg("-k");
        }
        if let Some(seconds) = self.seconds_max {
            command.args(["-t", &seconds.to_string()]);
        }
        // After -t, which sets a number of requests too.
        command.args(["-n", &self.requests.to_string()]);
        command.args(["-c", &self.concurrency.to_string()]);
        command
    }

    fn report(&self, finished: &Finished) -> anyhow::Result<AbReport> {
        let output = &finished.stdout;
        let number = |label: &str| number_after(output, label);
        let requests = number("Complete requests:")?;
        ensure!(
            requests == self.requests || self.seconds_max.is_some(),
            "ab: only {requests} of {} got a response:\n{output}",
            self.requests
        );
        ensure!(
            number("Failed requests:")? == 0,
            "ab reports failed requests:\n{output}"
        );
        let millis = |label| u32::try_from(number(label)?).context("milliseconds");
        Ok(AbReport {
            requests,
            p90_ms: millis(" 90%")?,
            p99_ms: millis(" 99%")?,
            longest_ms: millis(" 100%")?,
            cpu: finished.cpu,
        })
    }
}

fn counts(output: &str) -> anyhow::Result<AbCounts> {
    // ab prints none of these lines when their count is zero.
    let not_2xx = output.contains("Non-2xx responses:");
    let not_2xx = not_2xx.then(|| number_after(output, "Non-2xx responses:"));
    let broken = output.split_once("Receive: ").and_then(|(_, rest)| {
        let (count, _) = rest.split_once(',')?;
        count.parse().ok()
    });
    let longest_ms = number_after(output, " 100%")?;
    Ok(AbCounts {
        complete: number_after(output, "Complete requests:")?,
        not_2xx: not_2xx.transpose()?.unwrap_or_default(),
        broken: broken.unwrap_or_default(),
        longest_ms: u32::try_from(longest_ms).context("milliseconds")?,
    })
}

fn number_after(output: &str, label: &str) -> anyhow::Result<u64> {
    let rest = output.lines().find_map(|line| {
        line.strip_prefix(label)
            .or_else(|| line.strip_prefix(' ')?.strip_prefix(label))
    });
    let first = rest.and_then(|rest| rest.split_ascii_whitespace().next());
    first
        .with_context(|| format!("ab does not say {label:?}:\n{output}"))?
        .parse()
        .context("ab's number")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "Complete requests:      1500\nFailed requests:        0\n  \
        90%     21\n  98%     22\n  99%     23\n 100%     25 (longest request)\n";

    fn finished() -> Finished {
        Finished {
            stdout: REPORT.to_owned(),
            cpu: ChildrenCpu::default(),
        }
    }

    #[test]
    fn percentiles_are_read() {
        let report = Ab::new(1500, 500).report(&finished());
        let report = report.expect("a clean report");
        let times = (report.p90_ms, report.p99_ms, report.longest_ms);
        assert_eq!(times, (21, 23, 25));
    }

    #[test]
    fn refusals_are_counted_where_there_are_any() {
        let told = |output| {
            let counts = counts(output).expect("a report");
            (
                counts.complete,
                counts.not_2xx,
                counts.broken,
                counts.longest_ms,
            )
        };
        assert_eq!(told(REPORT), (1500, 0, 0, 25));
        let failed = "   (Connect: 0, Receive: 3, Length: 27, Exceptions: 0)\n";
        let refused = format!("{failed}Non-2xx responses:      24\n{REPORT}");
        assert_eq!(told(&refused), (1500, 24, 3, 25));
    }

    #[test]
    fn a_request_without_a_response_is_an_error_unless_the_time_was_limited() {
        let mut ab = Ab::new(1501, 500);
        assert!(ab.report(&finished()).is_err());
        ab.seconds_max = Some(1);
        assert_eq!(ab.report(&finished()).expect("an early end").requests, 1500);
    }
}
