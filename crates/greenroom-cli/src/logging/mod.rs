//! Log lines on standard error or in files, for people or for programs.

mod common;
mod file;
mod gathering;
mod journal;
mod levels;
mod losses;
mod plain;
mod second;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use tracing::Subscriber;
use tracing::subscriber::with_default;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::args::{AccessLogFormat, LogArgs, LogFormat};
use common::CommonFormat;
pub(crate) use file::LogFiles;
use gathering::Gathering;
use journal::JournalFormat;
pub(crate) use levels::Levels;
use losses::{Log, Losses, Place, Watched};

/// Lines that wait to be written. Beyond it lines are dropped: a slow reader of the log must not
/// slow the loops.
const LINES_WAITING_MAX: usize = 16_384;

/// The target of the lines for requests.
const ACCESS: &str = "greenroom::access";

/// Runs work before there are threads, with its log lines on standard error at once.
pub(crate) fn before_threads<T>(args: &LogArgs, work: impl FnOnce() -> T) -> T {
    // The journal has standard error, too.
    let format = args.log_format.of_file();
    let lines = layer(format, io::stderr, io::stderr().is_terminal());
    with_default(registry().with(args.log_level.clone()).with(lines), work)
}

/// The log's writers. The waiting lines are written when it is dropped.
pub(crate) struct Logging {
    /// The error log's is the last.
    sinks: Vec<Sink>,
    pub(crate) levels: Levels,
}

impl Logging {
    pub(crate) fn start(args: &LogArgs, files: LogFiles) -> Self {
        let is_terminal = files.error.is_none() && io::stderr().is_terminal();
        let mut format = args.log_format;
        let (lines, rest) = match (files.error, files.journal) {
            (Some(file), _) => {
                format = format.of_file();
                Sink::start(Log::Error, Gathering::new(file))
            }
            (None, Some(journal)) => Sink::start(Log::Error, journal),
            (None, None) => Sink::start(Log::StandardError, Gathering::new(io::stderr())),
        };
        let rest_lines = lines.clone();
        let levels = Levels::default();
        let level = || levels.filter(&args.log_level);
        let of_requests = filter_fn(|line| line.target() == ACCESS);
        let others = filter_fn(|line| line.target() != ACCESS).and(level());
        let (lines, sinks) = match (files.access, args.access_log_format) {
            (Some(file), _) => {
                let (lines, access) = Sink::start(Log::Access, Gathering::new(file));
                let lines = access_layer(args, lines, false);
                (lines.with_filter(of_requests).boxed(), vec![access, rest])
            }
            (None, Some(_)) if format != LogFormat::Journald => {
                let lines = access_layer(args, lines, is_terminal);
                let of_requests = of_requests.and(level());
                (lines.with_filter(of_requests).boxed(), vec![rest])
            }
            (None, _) => {
                let lines = layer(format, lines, is_terminal);
                registry().with(level()).with(lines).init();
                let sinks = vec![rest];
                return Self { sinks, levels };
            }
        };
        let rest_lines = layer(format, rest_lines, is_terminal);
        let both = vec![lines, rest_lines.with_filter(others).boxed()];
        registry().with(both).init();
        Self { sinks, levels }
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        // In this order, as the error log says what the access log has lost.
        self.sinks.drain(..).for_each(Sink::end);
    }
}

/// A thread that writes lines to one place.
struct Sink {
    losses: Arc<Losses>,
    writer: WorkerGuard,
}

impl Sink {
    fn start(log: Log, place: impl Place + Send + 'static) -> (NonBlocking, Self) {
        let losses = Arc::new(Losses::new(log));
        let (lines, writer) = NonBlockingBuilder::default()
            .buffered_lines_limit(LINES_WAITING_MAX)
            .finish(Watched::new(place, Arc::clone(&losses)));
        losses.include(lines.error_counter());
        (lines, Self { losses, writer })
    }

    /// Writes the lines that wait, and says how many were lost.
    fn end(self) {
        let told = self.losses.tell_itself();
        drop(self.writer);
        self.losses.tell_at_end(told);
    }
}

/// Returns the layer of the lines for requests.
fn access_layer<S, W>(
    args: &LogArgs,
    lines: W,
    is_terminal: bool,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    let format = match args.access_log_format {
        Some(AccessLogFormat::Common) => CommonFormat::COMMON,
        Some(AccessLogFormat::Combined) => CommonFormat::COMBINED,
        Some(AccessLogFormat::Human) => return layer(LogFormat::Human, lines, is_terminal),
        Some(AccessLogFormat::Json) => return layer(LogFormat::Json, lines, is_terminal),
        None => return layer(args.log_format.of_file(), lines, is_terminal),
    };
    let lines = fmt::layer().with_ansi(false).with_writer(lines);
    lines.event_format(format).boxed()
}

fn layer<S, W>(format: LogFormat, lines: W, is_terminal: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = fmt::layer().with_writer(lines);
    match format {
        LogFormat::Journald => layer.with_ansi(false).event_format(JournalFormat).boxed(),
        LogFormat::Human if is_terminal => layer.with_ansi(true).boxed(),
        LogFormat::Human => {
            let layer = layer.with_ansi(false).with_timer(plain::Clock);
            layer.fmt_fields(plain::Fields).boxed()
        }
        LogFormat::Json => layer.json().boxed(),
    }
}
