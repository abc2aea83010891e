//! Log lines on standard error, for people or for programs.

use std::io::{self, IsTerminal};

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt;

use crate::args::{LogArgs, LogFormat};

/// Lines that wait to be written. Beyond it lines are dropped: whoever reads the log slowly must
/// not slow the loops.
const LINES_WAITING_MAX: usize = 16_384;

/// Writes the lines that wait when it is dropped.
pub(crate) struct Logging {
    lost: ErrorCounter,
    _writer: WorkerGuard,
}

impl Logging {
    pub(crate) fn start(args: &LogArgs) -> Self {
        let (lines, writer) = NonBlockingBuilder::default()
            .buffered_lines_limit(LINES_WAITING_MAX)
            .finish(io::stderr());
        let lost = lines.error_counter();
        subscribe(args, lines);
        Self {
            lost,
            _writer: writer,
        }
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        let lines = self.lost.dropped_lines();
        if lines > 0 {
            tracing::warn!(
                lines,
                "log lines were lost: standard error was read too slowly"
            );
        }
    }
}

fn subscribe(args: &LogArgs, lines: NonBlocking) {
    let builder = fmt()
        .with_env_filter(args.log_level.clone())
        .with_writer(lines);
    match args.log_format {
        LogFormat::Human => builder.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().init(),
    }
}
