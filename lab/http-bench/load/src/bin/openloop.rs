//! Sends requests by schedule, whether or not earlier ones were answered, and times each from its scheduled time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use clap::Parser;
use http_bench_load::{Engine, Latencies, Outcome, Target, print_line};
use serde_json::json;

#[derive(Debug, Parser)]
struct Options {
    /// <http://127.0.0.1:PORT/PATH>
    #[arg(long)]
    url: Target,
    /// Requests per second
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    rate: u32,
    /// Seconds of load
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// At most so many connections; a request that finds none free waits, and its clock runs
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=19_900))]
    connections_max: u32,
    /// Wait at most so many seconds for answers after the last request
    #[arg(long, default_value_t = 5)]
    grace_seconds: u64,
}

fn main() -> anyhow::Result<()> {
    OpenLoop::new(Options::parse())?.run()
}

struct OpenLoop {
    options: Options,
    engine: Engine,
    idle: Vec<usize>,
    /// Scheduled times of requests that found no connection.
    overdue: VecDeque<Instant>,
    outcomes: Vec<Outcome>,
    latencies: Latencies,
    /// How late the generator itself was.
    lateness: Latencies,
    scheduled: u32,
    errors: u64,
    first_error: Option<String>,
    connections_peak: usize,
}

impl OpenLoop {
    fn new(options: Options) -> anyhow::Result<Self> {
        Ok(Self {
            engine: Engine::new(&options.url)?,
            idle: Vec::new(),
            overdue: VecDeque::new(),
            outcomes: Vec::new(),
            latencies: Latencies::new()?,
            lateness: Latencies::new()?,
            scheduled: 0,
            errors: 0,
            first_error: None,
            connections_peak: 0,
            options,
        })
    }

    fn run(mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let total = self.options.rate * self.options.seconds;
        let grace = Duration::from_secs(self.options.grace_seconds);
        let deadline = begun + Duration::from_secs(self.options.seconds.into()) + grace;
        while self.unfinished(total) && Instant::now() < deadline {
            self.send_due(begun, total);
            let next = if self.scheduled < total {
                self.due(begun)
            } else {
                deadline
            };
            let timeout = next.saturating_duration_since(Instant::now());
            self.engine.wait(timeout, &mut self.outcomes)?;
            self.collect();
        }
        self.report(total)
    }

    fn unfinished(&self, total: u32) -> bool {
        self.latencies.count() + self.errors < u64::from(total)
    }

    fn due(&self, begun: Instant) -> Instant {
        begun + Duration::from_secs(1) * self.scheduled / self.options.rate
    }

    fn send_due(&mut self, begun: Instant, total: u32) {
        while let Some(since) = self.overdue.pop_front() {
            if !self.send(since) {
                self.overdue.push_front(since);
                break;
            }
        }
        while self.scheduled < total {
            let since = self.due(begun);
            let Some(late) = Instant::now().checked_duration_since(since) else {
                break;
            };
            self.lateness.record(late);
            self.scheduled += 1;
            if !self.overdue.is_empty() || !self.send(since) {
                self.overdue.push_back(since);
            }
        }
    }

    /// False when every connection is busy and no more may be opened.
    fn send(&mut self, since: Instant) -> bool {
        let sent = match self.idle.pop() {
            Some(connection) => self.engine.send(connection, since),
            None if self.engine.connections() >= self.options.connections_max as usize => {
                return false;
            }
            None => self.engine.open(None, since),
        };
        self.connections_peak = self.connections_peak.max(self.engine.connections());
        if let Err(error) = sent {
            self.failed(&error);
        }
        true
    }

    fn collect(&mut self) {
        let outcomes = std::mem::take(&mut self.outcomes);
        for outcome in &outcomes {
            match outcome {
                Outcome::Answered {
                    connection,
                    latency,
                } => {
                    self.latencies.record(*latency);
                    self.idle.extend(connection);
                }
                Outcome::Failed(error) => self.failed(error),
                Outcome::IdleClosed(closed) => self.idle.retain(|idle| idle != closed),
            }
        }
        self.outcomes = outcomes;
        self.outcomes.clear();
    }

    fn failed(&mut self, error: &anyhow::Error) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| format!("{error:#}"));
    }

    fn report(self, total: u32) -> anyhow::Result<()> {
        let overdue = u32::try_from(self.overdue.len()).unwrap_or(u32::MAX);
        print_line(&json!({
            "offered": total,
            "answered": self.latencies.count(),
            "errors": self.errors,
            "first_error": self.first_error,
            "missed_sends": total - self.scheduled + overdue,
            "connections_peak": self.connections_peak,
            "latency": self.latencies.json(),
            "generator_lateness": self.lateness.json(),
        }))?;
        Ok(())
    }
}
