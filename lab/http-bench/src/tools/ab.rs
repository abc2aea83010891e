//! ab: a connection for each request.

use anyhow::{Context, ensure};

use super::run;
use crate::process::{LOAD_CORE, pinned};

/// One run of ab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ab {
    pub(crate) requests: u64,
    pub(crate) concurrency: u32,
}

/// Times of whole requests, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percentiles {
    pub(crate) p99_ms: u32,
    pub(crate) longest_ms: u32,
}

impl Ab {
    /// Runs to its end; every request must be answered.
    pub(crate) fn run(&self, url: &str) -> anyhow::Result<Percentiles> {
        let mut command = pinned(LOAD_CORE, "ab");
        command.args([
            "-q",
            "-n",
            &self.requests.to_string(),
            "-c",
            &self.concurrency.to_string(),
            url,
        ]);
        self.percentiles(&run(&mut command)?)
    }

    fn percentiles(&self, output: &str) -> anyhow::Result<Percentiles> {
        let number = |label: &str| number_after(output, label);
        let complete = number("Complete requests:")?;
        ensure!(
            complete == self.requests,
            "ab: only {complete} of {} answered:\n{output}",
            self.requests
        );
        ensure!(
            number("Failed requests:")? == 0,
            "ab reports failed requests:\n{output}"
        );
        let millis = |label| u32::try_from(number(label)?).context("milliseconds");
        Ok(Percentiles {
            p99_ms: millis(" 99%")?,
            longest_ms: millis(" 100%")?,
        })
    }
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

    const REPORT: &str = "Complete requests:      1500\nFailed requests:        0\n  98%     22\n  99%     23\n 100%     25 (longest request)\n";

    #[test]
    fn percentiles_are_read() {
        let ab = Ab {
            requests: 1500,
            concurrency: 500,
        };
        let expected = Percentiles {
            p99_ms: 23,
            longest_ms: 25,
        };
        assert_eq!(ab.percentiles(REPORT).expect("a clean report"), expected);
    }

    #[test]
    fn an_unanswered_request_is_an_error() {
        assert!(
            Ab {
                requests: 1501,
                concurrency: 500
            }
            .percentiles(REPORT)
            .is_err()
        );
    }
}
