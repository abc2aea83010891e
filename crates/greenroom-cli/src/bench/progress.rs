//! What is told while a run goes on.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use greenroom_load::plan::{Plan, StreamPlan};
use greenroom_load::report::progress;
use greenroom_load::run;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::bench::OutputArgs;

/// Steps of a bar.
const STEPS: u64 = 1000;

/// A bar for each stream on a terminal, else a line for each interval, on standard error.
pub(super) struct Progress {
    streams: Vec<Told>,
    is_quiet: bool,
}

struct Told {
    /// How long the stream lasts, if that is known.
    duration: Option<Duration>,
    /// How many requests it sends, if that is known.
    requests: Option<u64>,
    /// What lines begin with, when there are several streams.
    name: String,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new(args: &OutputArgs, plan: &Plan) -> Self {
        let draws = io::stderr().is_terminal() && !args.quiet;
        let bars = indicatif::MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let told = |stream: &StreamPlan| Told {
            duration: stream.duration(),
            requests: stream.end.requests.filter(|_| !stream.is_open_loop()),
            name: match plan.streams.len() {
                1 => String::new(),
                _ => format!("{}: ", stream.name),
            },
            bar: draws.then(|| bars.add(bar())),
        };
        Self {
            streams: plan.streams.iter().map(told).collect(),
            is_quiet: args.quiet,
        }
    }

    pub(super) fn tell(&mut self, now: &run::Progress<'_>) {
        let told = &self.streams[now.stream];
        let line = format!("{}{}", told.name, progress::line(now));
        if let Some(bar) = &told.bar {
            bar.set_position(told.position(now));
            bar.set_message(line);
        } else if !self.is_quiet {
            // Whoever closed standard error does not want to know.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    pub(super) fn finish(&self) {
        for bar in self.streams.iter().filter_map(|told| told.bar.as_ref()) {
            bar.finish_and_clear();
        }
    }
}

impl Told {
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
