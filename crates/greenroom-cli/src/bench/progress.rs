//! Progress of a run.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use greenroom_load::plan::{Plan, StreamPlan};
use greenroom_load::report::progress;
use greenroom_load::run;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::bench::OutputArgs;

/// Steps of a bar.
const STEPS: u64 = 1000;

/// The display of progress on standard error: a bar for each stream on a terminal, else a line for
/// each interval.
pub(super) struct Progress {
    streams: Vec<StreamProgress>,
    is_quiet: bool,
}

struct StreamProgress {
    /// The duration of the stream, if known.
    duration: Option<Duration>,
    /// The number of its requests, if known.
    requests: Option<u64>,
    /// The prefix of its lines, when there are several streams.
    name: String,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new(args: &OutputArgs, plan: &Plan) -> Self {
        let draws = io::stderr().is_terminal() && !args.quiet;
        let bars = indicatif::MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let shown = |stream: &StreamPlan| StreamProgress {
            duration: stream.duration(),
            requests: stream.end.requests.filter(|_| !stream.is_open_loop()),
            name: match plan.streams.len() {
                1 => String::new(),
                _ => format!("{}: ", stream.name),
            },
            bar: draws.then(|| bars.add(bar())),
        };
        Self {
            streams: plan.streams.iter().map(shown).collect(),
            is_quiet: args.quiet,
        }
    }

    pub(super) fn show(&mut self, now: &run::Progress<'_>) {
        let stream = &self.streams[now.stream];
        let line = format!("{}{}", stream.name, progress::line(now));
        if let Some(bar) = &stream.bar {
            bar.set_position(stream.position(now));
            bar.set_message(line);
        } else if !self.is_quiet {
            // A closed standard error ends nothing.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    pub(super) fn finish(&self) {
        for bar in self.streams.iter().filter_map(|stream| stream.bar.as_ref()) {
            bar.finish_and_clear();
        }
    }
}

impl StreamProgress {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a bar"
    )]
    fn position(&self, now: &run::Progress<'_>) -> u64 {
        let of_time = self
            .duration
            .map(|whole| now.elapsed.as_secs_f64() / whole.as_secs_f64());
        let of_requests = self.requests.map(|whole| now.ended as f64 / whole as f64);
        let part = of_time.unwrap_or(0.0).max(of_requests.unwrap_or(0.0));
        (part.min(1.0) * STEPS as f64) as u64
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(STEPS).with_style(style)
}
