//! Flags of an application's workers: their number, and limits for each.

use std::num::NonZeroU64;
use std::time::Duration;

use bytesize::ByteSize;
use greenroom::psgi::{Builder, Concurrency, WORKERS_MAX};

use crate::args::value;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct PoolArgs {
    /// Worker processes of an application, from 1 to 1024 (default: one for each core)
    ///
    /// An application that blocks takes as many requests at once as it has workers. One that keeps
    /// in its process what all its clients share, as some for Twiggy do, needs 1.
    #[arg(
        long,
        env = "GREENROOM_WORKERS",
        value_name = "NUMBER",
        value_parser = workers
    )]
    workers: Option<usize>,

    /// Requests that a worker may have at once: a number, or auto to learn it
    ///
    /// A worker without an event loop runs one at a time, whatever is said here. With auto,
    /// requests are sent ahead of routes only that have proven short, and up to 10,000 wait in an
    /// event loop.
    #[arg(
        long,
        env = "GREENROOM_WORKER_CONCURRENCY",
        value_name = "NUMBER",
        default_value = "auto",
        value_parser = concurrency
    )]
    worker_concurrency: Concurrency,

    /// Load the application once, before workers are forked, so that they share its memory
    #[arg(long, env = "GREENROOM_PRELOAD", alias = "preload-app")]
    preload: bool,

    /// Longest time that a worker may give no sign of life while it works before it is killed and
    /// replaced
    #[arg(
        long,
        env = "GREENROOM_TIMEOUT",
        value_name = "TIME",
        default_value = "1m",
        value_parser = value::positive_time
    )]
    timeout: Duration,

    /// Requests after which a worker is replaced (default: never)
    #[arg(
        long,
        env = "GREENROOM_MAX_REQUESTS",
        value_name = "NUMBER",
        value_parser = value::positive::<NonZeroU64>
    )]
    max_requests: Option<NonZeroU64>,

    /// Memory of a worker beyond which it is replaced (default: any)
    #[arg(
        long,
        env = "GREENROOM_MAX_RSS",
        value_name = "SIZE",
        value_parser = value::positive_size
    )]
    max_rss: Option<ByteSize>,
}

/// The settings of one application that differ from the others'.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PoolChanges {
    workers: Option<usize>,
    concurrency: Option<Concurrency>,
    preload: Option<bool>,
    timeout: Option<Duration>,
    max_requests: Option<NonZeroU64>,
    max_rss: Option<ByteSize>,
}

impl PoolArgs {
    pub(super) fn changed(&self, changes: &PoolChanges) -> Self {
        Self {
            workers: changes.workers.or(self.workers),
            worker_concurrency: changes.concurrency.unwrap_or(self.worker_concurrency),
            preload: changes.preload.unwrap_or(self.preload),
            timeout: changes.timeout.unwrap_or(self.timeout),
            max_requests: changes.max_requests.or(self.max_requests),
            max_rss: changes.max_rss.or(self.max_rss),
        }
    }

    pub(super) fn apply(&self, builder: Builder) -> Builder {
        let mut builder = builder
            .concurrency(self.worker_concurrency)
            .preload(self.preload)
            .timeout(self.timeout);
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        if let Some(requests) = self.max_requests {
            builder = builder.max_requests(requests.get());
        }
        if let Some(size) = self.max_rss {
            builder = builder.max_rss(size.as_u64());
        }
        builder
    }
}

impl PoolChanges {
    /// Takes one `key=value`. Returns `None` if there is no such key.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        Some(match key {
            "workers" => assign(&mut self.workers, workers(value)),
            "concurrency" => assign(&mut self.concurrency, concurrency(value)),
            "preload" => assign(&mut self.preload, yes_or_no(value)),
            "timeout" => assign(&mut self.timeout, value::positive_time(value)),
            "max-requests" => assign(&mut self.max_requests, value::positive(value)),
            "max-rss" => assign(&mut self.max_rss, value::positive_size(value)),
            _ => return None,
        })
    }
}

fn assign<T>(place: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *place = Some(value?);
    Ok(())
}

fn workers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|number| (1..=WORKERS_MAX).contains(number))
        .ok_or_else(|| format!("allowed are whole numbers from 1 to {WORKERS_MAX}"))
}

fn concurrency(text: &str) -> Result<Concurrency, String> {
    if text == "auto" {
        return Ok(Concurrency::Auto);
    }
    let number = value::positive(text).map(Concurrency::AtMost);
    number.map_err(|error| format!("{error}, and auto"))
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("allowed are yes and no".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_a_number_or_learnt() {
        assert_eq!(concurrency("auto"), Ok(Concurrency::Auto));
        let three = 3.try_into().expect("it is not zero");
        assert_eq!(concurrency("3"), Ok(Concurrency::AtMost(three)));
        for text in ["0", "", "many", "-1"] {
            assert!(concurrency(text).is_err_and(|error| error.contains("auto")));
        }
    }

    #[test]
    fn workers_are_some_and_not_too_many() {
        assert_eq!((workers("1"), workers("1024")), (Ok(1), Ok(1_024)));
        for text in ["0", "1025", "two", ""] {
            assert!(workers(text).is_err_and(|error| error.contains("1 to 1024")));
        }
    }
}
