//! The output of a run.

use std::io::Write;
use std::process::{Command, Stdio};

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Finished {
    /// `None` when a signal ended it.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// Asserts this exit status; the message of the panic holds all that was printed.
    pub(crate) fn expect_status(self, status: i32) -> Self {
        assert_eq!(
            self.status,
            Some(status),
            "\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Returns the output of a shell's pipeline that reads the report, as scripts do that were
    /// written for ab.
    pub(crate) fn piped_to(&self, pipeline: &str) -> String {
        let mut shell = Command::new("sh")
            .args(["-c", pipeline])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let mut stdin = shell.stdin.take().expect("it is piped");
        // A pipeline may have seen enough before the end.
        let _ = stdin.write_all(self.stdout.as_bytes());
        drop(stdin);
        let output = shell.wait_with_output().expect("the shell ends");
        String::from_utf8(output.stdout)
            .expect("it is text")
            .trim_end()
            .to_owned()
    }

    /// Returns the number that a pipeline prints.
    pub(crate) fn number(&self, pipeline: &str) -> f64 {
        let text = self.piped_to(pipeline);
        text.parse()
            .unwrap_or_else(|_| panic!("{pipeline}: {text:?} is no number in\n{}", self.stdout))
    }

    /// Returns the number behind a label of the report.
    pub(crate) fn count(&self, label: &str) -> u64 {
        let line = self.stdout.lines().find(|line| line.starts_with(label));
        let value = line.and_then(|line| line[label.len()..].split_whitespace().next());
        value
            .and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("no number behind {label:?} in\n{}", self.stdout))
    }

    /// Asserts that standard output contains all of this.
    pub(crate) fn assert_prints(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.stdout.contains(text), "{text:?}\n{}", self.stdout);
        }
    }

    /// Asserts that this number of requests failed, and all in one of these ways.
    pub(crate) fn assert_failed(&self, count: u64, kinds: &[&str]) {
        assert_eq!(self.count("Failed requests:"), count, "{}", self.stdout);
        let counts = kinds.iter().filter_map(|kind| self.failures(kind));
        assert_eq!(counts.sum::<u64>(), count, "{kinds:?}\n{}", self.stdout);
    }

    /// Returns the number of requests that failed in this way, if any did.
    fn failures(&self, kind: &str) -> Option<u64> {
        let mut lines = self.stdout.lines().map(str::split_whitespace);
        let count = lines.find_map(|mut words| {
            let is_it = words.next() == Some(kind);
            is_it.then(|| words.next()).flatten()
        })?;
        count.parse().ok()
    }
}
