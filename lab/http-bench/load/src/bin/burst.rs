//! Opens many connections at once with one request each, and times every request from its own start.

use std::time::{Duration, Instant};

use clap::Parser;
use http_bench_load::{Engine, Latencies, Outcome, Target, print_line};
use serde_json::json;

#[derive(Debug, Parser)]
struct Options {
    /// <http://127.0.0.1:PORT/PATH>
    #[arg(long)]
    url: Target,
    /// How many connections
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=19_900))]
    connections: u32,
    /// Spread the starts evenly over this many milliseconds
    #[arg(long, default_value_t = 0)]
    spread_ms: u64,
    /// Give up after this many seconds
    #[arg(long, default_value_t = 15)]
    seconds_max: u64,
}

fn main() -> anyhow::Result<()> {
    Burst::new(Options::parse())?.run()
}

struct Burst {
    options: Options,
    engine: Engine,
    latencies: Latencies,
    outcomes: Vec<Outcome>,
    errors: u64,
    first_error: Option<String>,
    peak_waiting: u64,
}

impl Burst {
    fn new(options: Options) -> anyhow::Result<Self> {
        let engine = Engine::new(&options.url)?;
        let latencies = Latencies::new()?;
        let outcomes = Vec::new();
        Ok(Self {
            options,
            engine,
            latencies,
            outcomes,
            errors: 0,
            first_error: None,
            peak_waiting: 0,
        })
    }

    fn run(mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        self.open_all(begun)?;
        print_line(&json!({ "sent": self.options.connections }))?;
        let deadline = begun + Duration::from_secs(self.options.seconds_max);
        let all = u64::from(self.options.connections);
        while self.latencies.count() + self.errors < all && Instant::now() < deadline {
            self.collect(deadline.saturating_duration_since(Instant::now()))?;
        }
        self.report(begun.elapsed())
    }

    fn open_all(&mut self, begun: Instant) -> anyhow::Result<()> {
        let spread = Duration::from_millis(self.options.spread_ms);
        for index in 0..self.options.connections {
            let due = begun + spread * index / self.options.connections;
            while let Some(early) = due
                .checked_duration_since(Instant::now())
                .filter(|early| !early.is_zero())
            {
                self.collect(early)?;
            }
            self.engine.open(None, Instant::now())?;
            let done = self.latencies.count() + self.errors;
            self.peak_waiting = self.peak_waiting.max(u64::from(index) + 1 - done);
        }
        Ok(())
    }

    fn collect(&mut self, timeout: Duration) -> anyhow::Result<()> {
        self.engine.wait(timeout, &mut self.outcomes)?;
        for outcome in self.outcomes.drain(..) {
            match outcome {
                Outcome::Answered { latency, .. } => self.latencies.record(latency),
                Outcome::Failed(error) => {
                    self.errors += 1;
                    self.first_error.get_or_insert_with(|| format!("{error:#}"));
                }
                Outcome::IdleClosed(_) => {}
            }
        }
        Ok(())
    }

    fn report(self, took: Duration) -> anyhow::Result<()> {
        print_line(&json!({
            "answered": self.latencies.count(),
            "errors": self.errors,
            "first_error": self.first_error,
            "peak_waiting": self.peak_waiting,
            "took_ms": took.as_millis(),
            "latency": self.latencies.json(),
        }))?;
        Ok(())
    }
}
