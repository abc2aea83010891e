//! The cases, in the order of the table of goals.

mod contestant;
mod echo_burst;
mod echo_crowd;
mod idle;
mod per_request;
mod pixel;
mod proxy;

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use self::contestant::Contestant;
use crate::args::Args;
use crate::binaries::Binaries;
use crate::report::Report;
use crate::stats::{Spread, order};

/// What a case may use.
pub(crate) struct Context {
    pub(crate) binaries: Binaries,
    pub(crate) rounds: usize,
    pub(crate) seconds: u32,
}

impl Context {
    pub(crate) fn new(args: &Args, binaries: Binaries) -> Self {
        Self {
            binaries,
            rounds: args.rounds(),
            seconds: args.seconds(),
        }
    }

    /// Runs `measure` for each contestant in each round, in alternating order; the samples of each contestant.
    pub(crate) fn interleave<T>(
        &self,
        case: &str,
        contestants: &[Contestant],
        mut measure: impl FnMut(&Contestant) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<Row<T>>> {
        let mut rows: Vec<Row<T>> = contestants.iter().map(Row::new).collect();
        for round in 0..self.rounds {
            for index in order(round, contestants.len()) {
                eprintln!(
                    "{case}, round {} of {}: {}",
                    round + 1,
                    self.rounds,
                    rows[index].name
                );
                let sample =
                    measure(&contestants[index]).with_context(|| rows[index].name.clone())?;
                rows[index].samples.push(sample);
            }
        }
        Ok(rows)
    }
}

/// A contestant with its samples, one a round.
pub(crate) struct Row<T> {
    pub(crate) name: String,
    pub(crate) samples: Vec<T>,
}

impl<T> Row<T> {
    fn new(contestant: &Contestant) -> Self {
        Self {
            name: contestant.name.clone(),
            samples: Vec::new(),
        }
    }

    /// Median, least and most of one value.
    pub(crate) fn spread(&self, value: impl Fn(&T) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().map(value))
    }
}

/// The row of the contestant of this name, unless it was left out.
pub(crate) fn find<'a, T>(rows: &'a [Row<T>], name: &str) -> Option<&'a Row<T>> {
    rows.iter().find(|row| row.name == name)
}

/// Every sample, by contestant.
pub(crate) fn samples<T: Serialize>(rows: &[Row<T>]) -> Value {
    let by_name = rows
        .iter()
        .map(|row| (row.name.clone(), json!(row.samples)));
    Value::Object(by_name.collect())
}

/// One row of the table of goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// 64 keep-alive connections, plain service
    Keepalive,
    /// The same through an axum `Router`
    Router,
    /// 16 requests in one write
    Pipelined,
    /// One request per connection
    Perconnection,
    /// 10,000 idle keep-alive connections
    Idle,
    /// 15,000 requests that wait two seconds, at once
    Echo15k,
    /// 200 requests that wait two seconds, at once
    Echo200,
    /// 5,000 proxied requests per second
    Proxy,
    /// The ad blocker's pixel, as its author measured it
    Pixel,
}

impl Case {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keepalive => "keepalive",
            Self::Router => "router",
            Self::Pipelined => "pipelined",
            Self::Perconnection => "perconnection",
            Self::Idle => "idle",
            Self::Echo15k => "echo15k",
            Self::Echo200 => "echo200",
            Self::Proxy => "proxy",
            Self::Pixel => "pixel",
        }
    }

    /// Programs from the distribution that the case starts.
    pub(crate) fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Keepalive | Self::Router | Self::Pipelined => &["taskset", "wrk"],
            Self::Perconnection | Self::Echo200 | Self::Pixel => &["taskset", "ab"],
            Self::Idle | Self::Echo15k | Self::Proxy => &["taskset"],
        }
    }

    /// Whether the demo application takes part.
    pub(crate) fn needs_demo(self) -> bool {
        matches!(self, Self::Pixel | Self::Proxy)
    }

    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Report> {
        match self {
            Self::Keepalive => per_request::keepalive().run(context),
            Self::Router => per_request::router().run(context),
            Self::Pipelined => per_request::pipelined().run(context),
            Self::Perconnection => per_request::perconnection().run(context),
            Self::Idle => idle::run(context),
            Self::Echo15k => echo_crowd::run(context),
            Self::Echo200 => echo_burst::run(context),
            Self::Proxy => proxy::run(context),
            Self::Pixel => pixel::run(context),
        }
    }
}
