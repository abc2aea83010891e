use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::scheduler::Bounds;
use super::shared::Shared;
use super::{STAGES, Stage};

/// Settings of a stage, beginning with the defaults.
#[derive(Clone, Debug)]
pub struct StageBuilder {
    name: String,
    threads: RangeInclusive<usize>,
    queue_wait_max: Duration,
    queue_max: usize,
    queue_bytes_max: usize,
    blocking_threads_max: usize,
    idle_timeout: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) bounds: Bounds,
    pub(crate) queue_wait_max: Duration,
    pub(crate) queue_max: usize,
    pub(crate) queue_bytes_max: usize,
    pub(crate) idle_timeout: Duration,
}

/// An error of the settings, or of a system that has no thread to give.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The range is empty, or begins at 0.
    #[error(
        "stage `{stage}`: threads are {from}..={to}; at least 1, and no more at first than at most"
    )]
    Threads {
        /// The stage's name.
        stage: String,
        /// Threads at first.
        from: usize,
        /// Threads at most.
        to: usize,
    },
    /// `queue_max` is 0.
    #[error("stage `{stage}`: queue_max is 0; at least 1")]
    QueueMax {
        /// The stage's name.
        stage: String,
    },
    /// The process has a default stage already.
    #[error("stage `{stage}`: there is a default stage already; build it before it is used")]
    GlobalExists {
        /// The name of the stage that came too late.
        stage: String,
    },
    /// The first threads cannot be started.
    #[error("stage `{stage}`: no thread: {source}")]
    Start {
        /// The stage's name.
        stage: String,
        /// The system's error.
        source: io::Error,
    },
}

impl StageBuilder {
    pub(super) fn new(name: String) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            name,
            threads: cores..=cores,
            queue_wait_max: Duration::from_millis(500),
            queue_max: 65_536,
            queue_bytes_max: 64 << 20,
            blocking_threads_max: 512,
            idle_timeout: Duration::from_secs(10),
        }
    }

    /// Sets the number of threads that stay when there is nothing to do, and the number that may
    /// compute at a time. Default: the number of cores, for both. More than there are cores only
    /// makes all slower.
    #[must_use]
    pub fn threads(mut self, threads: RangeInclusive<usize>) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the longest time that work may wait for a thread. Default: 500 ms. New work is rejected
    /// when its predicted wait is over nine tenths of it: with 2 threads and runs of 30 ms, 31 may
    /// wait.
    #[must_use]
    pub fn queue_wait_max(mut self, wait: Duration) -> Self {
        self.queue_wait_max = wait;
        self
    }

    /// Sets the number of waiting runs at which new work is rejected, however short the wait.
    /// Default: 65,536, which a healthy burst does not reach: 15,000 requests of 10 us are over in
    /// 75 ms on two cores. Critical work may exceed it by one eighth, a flow that has nothing
    /// waiting by one sixteenth.
    #[must_use]
    pub fn queue_max(mut self, runs: usize) -> Self {
        self.queue_max = runs;
        self
    }

    /// Sets the bytes that all waiting work may take, above which new work is rejected: their
    /// futures, some 1 to 4 KiB each with axum, bodies not counted. Default: 67,108,864 (64 MiB).
    #[must_use]
    pub fn queue_bytes_max(mut self, bytes: usize) -> Self {
        self.queue_bytes_max = bytes;
        self
    }

    /// Sets the number of threads that may exist when handlers block: in a system call, on a lock,
    /// asleep. Default: 512. Never fewer than may compute.
    #[must_use]
    pub fn blocking_threads_max(mut self, threads: usize) -> Self {
        self.blocking_threads_max = threads;
        self
    }

    /// Sets the time without work after which a thread ends that is not one of the first. Default:
    /// 10 s.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Builds the stage and starts its first threads.
    ///
    /// # Errors
    ///
    /// [`BuildError`]: what is wrong, and what is allowed.
    pub fn build(self) -> Result<Stage, BuildError> {
        let settings = self.settings()?;
        let shared = Arc::new(Shared::new(settings));
        let stage = Stage::new(Arc::clone(&shared));
        for _ in 0..shared.settings.bounds.base {
            if !shared.scheduler.announce() {
                break;
            }
            shared.start_thread().map_err(|source| BuildError::Start {
                stage: shared.settings.name.clone(),
                source,
            })?;
        }
        STAGES.add(&shared);
        Ok(stage)
    }

    /// Builds the [default stage](Stage::global) of the process. To be called by the program, not
    /// by a library, and before anything uses that stage.
    ///
    /// # Errors
    ///
    /// [`BuildError::GlobalExists`] if there is one already; else as for [`build`](Self::build).
    pub fn build_global(self) -> Result<(), BuildError> {
        let stage = self.build()?;
        stage
            .make_global()
            .map_err(|stage| BuildError::GlobalExists {
                stage: stage.name().to_owned(),
            })
    }

    fn settings(self) -> Result<Settings, BuildError> {
        let (from, to) = (*self.threads.start(), *self.threads.end());
        let stage = self.name;
        if from == 0 || from > to {
            return Err(BuildError::Threads { stage, from, to });
        }
        if self.queue_max == 0 {
            return Err(BuildError::QueueMax { stage });
        }
        Ok(Settings {
            name: stage,
            bounds: Bounds {
                base: from,
                compute_max: to,
                threads_max: self.blocking_threads_max.max(to),
            },
            queue_wait_max: self.queue_wait_max,
            queue_max: self.queue_max,
            queue_bytes_max: self.queue_bytes_max,
            idle_timeout: self.idle_timeout,
        })
    }
}
