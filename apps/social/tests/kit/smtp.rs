//! A mail server for the tests: a separate program, which can be killed and restarted.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;
use url::Url;

/// Interval of looking for mails that have arrived.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest wait for mails.
const PATIENCE: Duration = Duration::from_mins(3);

/// A mail server that keeps its mails in a file, so that no acknowledged mail is lost when it is
/// killed.
pub(crate) struct SmtpSink {
    directory: TempDir,
    port: u16,
    program: Option<Child>,
}

/// A mail as it arrived. Names of headers are in lower case.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Mail {
    pub(crate) to: Vec<String>,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) text: String,
    pub(crate) html: String,
}

impl SmtpSink {
    pub(crate) fn start() -> Self {
        let mut sink = Self {
            directory: tempfile::tempdir().expect("there is room for a directory"),
            port: 0,
            program: None,
        };
        sink.restart();
        sink
    }

    pub(crate) fn url(&self) -> Url {
        let url = format!("smtp://127.0.0.1:{}", self.port);
        url.parse().expect("an address makes a URL")
    }

    /// Restarts it, at the same port and with the mails that it has.
    pub(crate) fn restart(&mut self) {
        let mut program = Command::new(python())
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kit/smtp_sink.py"))
            .arg(self.port.to_string())
            .arg(self.file())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let output = program.stdout.take().expect("it is piped");
        let line = BufReader::new(output)
            .lines()
            .next()
            .expect("it says its port");
        let port = line.expect("what it says is a text").parse();
        self.port = port.expect("a port is a number");
        self.program = Some(program);
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut program) = self.program.take() {
            program.kill().expect("it can be killed");
            program.wait().expect("it ends");
        }
    }

    /// Returns the mails that have arrived up to now.
    pub(crate) fn mails(&self) -> Vec<Mail> {
        let text = std::fs::read_to_string(self.file()).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mail = |line| serde_json::from_str(line).expect("each line is a mail");
        whole.lines().map(mail).collect()
    }

    /// Returns the mails, as soon as there are so many different ones.
    pub(crate) async fn at_least(&self, count: usize) -> Vec<Mail> {
        let arrived = async {
            while distinct(&self.mails()) < count {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, arrived).await;
        assert!(
            in_time.is_ok(),
            "{} of {count} mails have arrived",
            self.mails().len()
        );
        self.mails()
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("mails")
    }
}

impl Drop for SmtpSink {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the number of mails, duplicates counted once.
pub(crate) fn distinct(mails: &[Mail]) -> usize {
    let mut names: Vec<_> = mails
        .iter()
        .map(|mail| &mail.headers["message-id"])
        .collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

fn python() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/python/bin/python");
    assert!(
        path.is_file(),
        "{} is missing: run `make tools`",
        path.display()
    );
    path
}
