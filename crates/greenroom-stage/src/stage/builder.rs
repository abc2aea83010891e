use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use greenroom_settings::{HasSettings, SettingError, settings};

use super::scheduler::Bounds;
use super::shared::Shared;
use super::{STAGES, Stage};

settings! {
    /// Settings of a stage: limits of its queue and of its threads.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StageSettings set by StageBuilder {
        /// Threads in all, those that a handler blocks included; more work waits, or is rejected.
        ///
        /// A handler blocks in a system call, on a lock, or asleep. There are never fewer than may
        /// compute. One client holds at most seven eighths of those that others leave, 504 of 576
        /// if it is alone; of fewer than 8 it may hold all.
        blocking_threads_max: usize as Number = 576, 1..=StageBuilder::THREADS_MAX;

        /// Time that work may wait for a thread; 503 for what would wait longer.
        ///
        /// New work is rejected when its predicted wait is over nine tenths of it: with 2 threads
        /// and runs of 30 ms, 31 may wait. `Bulk` work may wait for a quarter of it, `Critical`
        /// work for any time. In a burst, of up to twice that time, twice as much.
        queue_wait_max: Duration as Time
            = Duration::from_millis(500), Duration::ZERO..=Duration::MAX;

        /// Runs that may wait for a thread, however short the wait; 503 beyond.
        ///
        /// A healthy burst does not reach the default: 15,000 requests of 10 us are over in 75 ms
        /// on two cores. Critical work may exceed it by one eighth, a flow that has nothing waiting
        /// by one sixteenth. Given-up work may fill as many places again before it is swept out.
        queue_max: usize as Number = 65_536, 1..=usize::MAX;

        /// Memory that all waiting work may take; 503 beyond.
        ///
        /// Its futures count, some 1 to 4 KiB each with axum, and bodies do not.
        queue_bytes_max: usize as Size = 64 << 20, 0..=usize::MAX;

        /// Time without work after which a thread ends that is not one of the first.
        idle_timeout: Duration as Time = Duration::from_secs(10), Duration::ZERO..=Duration::MAX;
    }
}

/// The builder of a stage, which begins with the default settings.
#[derive(Clone, Debug)]
pub struct StageBuilder {
    name: String,
    threads: RangeInclusive<usize>,
    settings: StageSettings,
}

/// The settings of a stage that was built.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) bounds: Bounds,
    pub(crate) limits: StageSettings,
}

/// An error of the settings, or of a system that has no thread to give.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The range is empty, begins at 0, or ends above [`StageBuilder::THREADS_MAX`].
    #[error(
        "stage `{stage}`: threads are {from}..={to}; at least 1, no more at first than at most, and \
         at most {max}",
        max = StageBuilder::THREADS_MAX
    )]
    Threads {
        /// The stage's name.
        stage: String,
        /// Threads at first.
        from: usize,
        /// Threads at most.
        to: usize,
    },
    /// A setting has a value that is not allowed.
    #[error("stage `{stage}`: {source}")]
    Setting {
        /// The stage's name.
        stage: String,
        /// The setting, and what is allowed.
        source: SettingError,
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
    /// Most threads of a stage.
    pub const THREADS_MAX: usize = 65_535;

    pub(super) fn new(name: String) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            name,
            threads: cores..=cores,
            settings: StageSettings::default(),
        }
    }

    /// Sets the number of threads that stay when there is nothing to do, and the number that may
    /// compute at a time, at most [`THREADS_MAX`](Self::THREADS_MAX). Default: the number of cores,
    /// for both. More than there are cores only makes all slower.
    #[must_use]
    pub fn threads(mut self, threads: RangeInclusive<usize>) -> Self {
        self.threads = threads;
        self
    }

    /// Sets all settings at once.
    #[must_use]
    pub fn settings(mut self, settings: StageSettings) -> Self {
        self.settings = settings;
        self
    }

    fn settings_mut(&mut self) -> &mut StageSettings {
        &mut self.settings
    }

    /// Builds the stage and starts its first threads.
    ///
    /// # Errors
    ///
    /// [`BuildError`]: what is wrong, and what is allowed.
    pub fn build(self) -> Result<Stage, BuildError> {
        let settings = self.checked()?;
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

    fn checked(self) -> Result<Settings, BuildError> {
        let (from, to) = (*self.threads.start(), *self.threads.end());
        let stage = self.name;
        if from == 0 || from > to || to > Self::THREADS_MAX {
            return Err(BuildError::Threads { stage, from, to });
        }
        let limits = self.settings;
        if let Err(source) = limits.check() {
            return Err(BuildError::Setting { stage, source });
        }
        Ok(Settings {
            name: stage,
            bounds: Bounds {
                base: from,
                compute_max: to,
                threads_max: limits.blocking_threads_max.max(to),
            },
            limits,
        })
    }
}
