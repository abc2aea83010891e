//! Load by `greenroom bench`, several at once.

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use bench_kit::tools::GreenroomReport;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::{NamedTempFile, TempDir};

/// The program's exit status when it could not keep the requested rate; its report says so too.
const RATE_MISSED: i32 = 3;
/// Its exit status when it was interrupted; it reports what was measured until then.
const INTERRUPTED: i32 = 130;

/// A load to be generated.
#[derive(Debug)]
pub(crate) struct Load {
    program: PathBuf,
    arguments: Vec<String>,
    urls: Option<NamedTempFile>,
}

/// A load that is being generated; it ends with this value.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    directory: TempDir,
    /// The list of URLs, read when the program begins, and so kept until it ends.
    _urls: Option<NamedTempFile>,
}

impl Load {
    /// Starts a load without flags, by the program `greenroom`.
    pub(crate) fn new(program: PathBuf) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            urls: None,
        }
    }

    /// Adds flags of `greenroom bench`, or a URL.
    pub(crate) fn flags<A: Into<String>>(mut self, flags: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(flags.into_iter().map(Into::into));
        self
    }

    /// Requests each of these URLs once, in this order.
    pub(crate) fn urls(mut self, urls: impl IntoIterator<Item = String>) -> anyhow::Result<Self> {
        let mut file = NamedTempFile::new().context("a file of URLs")?;
        let lines: String = urls.into_iter().map(|url| url + "\n").collect();
        file.write_all(lines.as_bytes()).context("a file of URLs")?;
        self.urls = Some(file);
        Ok(self)
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> anyhow::Result<GreenroomReport> {
        self.start()?.finish()
    }

    pub(crate) fn start(self) -> anyhow::Result<Running> {
        let directory = TempDir::new().context("a directory for the report")?;
        let mut command = Command::new(&self.program);
        command.args(["bench", "-q"]).args(&self.arguments);
        command.arg("--json").arg(report_of(&directory));
        if let Some(urls) = &self.urls {
            command.arg("--url-file").arg(urls.path());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().context("cannot start greenroom bench")?;
        Ok(Running {
            child,
            directory,
            _urls: self.urls,
        })
    }
}

impl Running {
    /// Waits until it ends by itself.
    pub(crate) fn finish(mut self) -> anyhow::Result<GreenroomReport> {
        let status = self.child.wait().context("greenroom bench")?;
        let accepted = [0, RATE_MISSED, INTERRUPTED];
        ensure!(
            status.code().is_some_and(|code| accepted.contains(&code)),
            "greenroom bench: {status}"
        );
        let path = report_of(&self.directory);
        let file = File::open(&path).with_context(|| path.display().to_string())?;
        serde_json::from_reader(BufReader::new(file)).context("the report of greenroom bench")
    }

    /// Ends it now, and returns what it has measured until now.
    pub(crate) fn interrupt(self) -> anyhow::Result<GreenroomReport> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?);
        kill(pid, Signal::SIGINT).context("SIGINT")?;
        self.finish()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, unless something failed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn report_of(directory: &TempDir) -> PathBuf {
    directory.path().join("report.json")
}
