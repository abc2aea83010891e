//! The settings of an application, their limits and defaults.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use greenroom_settings::{HasSettings, settings};
use greenroom_stage::ClientKey;

use crate::builder::Builder;
use crate::error::StartError;

/// The maximal number of workers of one application.
pub const WORKERS_MAX: usize = 1_024;

/// The most bytes of a request's body that can be held in memory: 16 MiB.
pub const BODY_MEMORY_MAX: usize = 16 * 1_024 * 1_024;

/// The most requests at once that a worker can be given: a million.
pub const CONCURRENCY_MAX: u32 = 1_000_000;

/// The default limit of requests that are at a worker at once: 10,000.
pub const REQUESTS_MAX: u32 = 10_000;

/// The number of requests that a worker is given at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// Learnt. A route whose runs may be long gets a worker that blocks for itself; of a route that
    /// has proven short, up to 64 requests are sent ahead; and up to [`REQUESTS_MAX`] wait for
    /// events in a worker that an event loop drives.
    #[default]
    Auto,
    /// No more than this, blocking or with an event loop; at most [`CONCURRENCY_MAX`].
    AtMost(NonZeroU32),
}

settings! {
    /// Settings of a Perl application: limits of its workers and of the queue before them.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct GatewaySettings set by Builder {
        /// Worker processes of an application.
        ///
        /// An application that blocks takes as many requests at once as it has workers. One that
        /// keeps in its process what all its clients share, as some for Twiggy do, needs 1.
        workers: usize as Number = cores() => "one for each core", 1..=WORKERS_MAX;

        /// Time that a worker may give no sign of life while it works; killed and replaced beyond.
        ///
        /// The request that it was at gets a 504. Waiting for a client to take a streamed body does
        /// not count, nor does a run that has a connection of its own.
        timeout: Duration as Time = Duration::from_mins(1), MILLISECOND..=Duration::MAX;

        /// Requests after which a worker is replaced.
        ///
        /// Each worker's number is up to a tenth lower, by chance, so that not all are replaced at
        /// once. The successor is loaded first, and the worker goes on serving meanwhile.
        max_requests: u64 as Number = u64::MAX, 1..=u64::MAX;

        /// Memory of a worker (resident) beyond which it is replaced; checked every second.
        ///
        /// The successor is loaded first.
        ///
        /// If a worker is above it before its first request, another one would be no smaller: the
        /// log warns once, with the size, and one worker is replaced after 10 s, the next after 20
        /// s more, then 40 s, up to 10 min. If a worker grows above it within a minute, as one
        /// before it did, the log warns once, and each worker is replaced once it has been ready
        /// for a minute.
        max_rss: u64 as Size = u64::MAX, 1..=u64::MAX;

        /// Time that the application may take to load, for the first process as for each worker.
        start_timeout: Duration as Time = Duration::from_mins(1), MILLISECOND..=Duration::MAX;

        /// Time in which a worker that is replaced or shut down may finish what it began.
        ///
        /// Then it is killed.
        drain_deadline: Duration as Time = Duration::from_secs(30), Duration::ZERO..=Duration::MAX;

        /// Requests that may wait for a worker, however short the wait; 503 beyond.
        ///
        /// The requests that one client sends to one route fill at most as many places as they
        /// leave free, or half of them if no other client waits, so that there is a place for
        /// others. A waiting request holds its head, by the server's limits up to 64 KiB, and its
        /// body up to `body_memory_max`: 16,384 of the largest hold 2 GiB.
        queue_max: usize as Number = 16_384, 1..=u32::MAX as usize;

        /// Time that a request may wait for a worker; 503 for what would wait longer.
        ///
        /// A new request is rejected if it would wait for longer than nine tenths of it.
        ///
        /// In a burst twice as long is allowed, so by default 20 s: until predicted waits were
        /// above 10 s for more than 20 s. Predictions err, so a request that was admitted then is
        /// not dropped before it has waited for 40 s; one that was admitted later is dropped after
        /// 10 s.
        queue_wait_max: Duration as Time = Duration::from_secs(10), MILLISECOND..=Duration::MAX;

        /// Size of a request's body; 413 beyond.
        ///
        /// A longer one never reaches the application.
        body_bytes_max: u64 as Size = 2 << 20, 0..=u64::MAX;

        /// Size of a request's body that is kept in memory until it is complete; in a file beyond.
        body_memory_max: usize as Size = 64 << 10, 0..=BODY_MEMORY_MAX;

        /// Size of all bodies that the workers have not responded to; 503 beyond.
        ///
        /// They count in memory and in files, from the first byte that comes until the response.
        /// Beyond it, a request that brings more gets a 503 with `Retry-After`, and the bytes that
        /// came of it are dropped; the others go on. The default is 512 bodies of 2 MiB. A longer
        /// body than this is never served.
        ///
        /// Uploads cannot wait for each other instead: each would hold the bytes that the others
        /// wait for. Bytes that a client only announces by `Content-Length` do not count, or it
        /// could take all the space without sending one. This limit is apart from the server's
        /// `memory_max`, as most of these bytes are on a disk.
        uploads_bytes_max: u64 as Size = 1 << 30, 1..=u64::MAX;
    }
}

/// A time-out of no time would end each request at once.
const MILLISECOND: Duration = Duration::from_millis(1);

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) application: PathBuf,
    pub(crate) limits: GatewaySettings,
    pub(crate) concurrency: Concurrency,
    pub(crate) preload: bool,
    pub(crate) includes: Vec<PathBuf>,
    /// Further directories that are watched for reloads.
    pub(crate) watched: Vec<PathBuf>,
    pub(crate) modules: Vec<String>,
    pub(crate) environment: Option<String>,
    pub(crate) reload_on_change: bool,
    pub(crate) client_key: Option<ClientKey>,
    pub(crate) perl: PathBuf,
    pub(crate) mount: String,
    pub(crate) label: Option<String>,
}

impl Concurrency {
    /// Returns the most requests that a worker is given at once, running and waiting.
    pub(crate) fn requests_max(self) -> u32 {
        match self {
            Self::Auto => REQUESTS_MAX,
            Self::AtMost(requests) => requests.get(),
        }
    }
}

impl Settings {
    /// Returns the defaults.
    pub(crate) fn new(application: PathBuf) -> Self {
        Self {
            application,
            limits: GatewaySettings::default(),
            concurrency: Concurrency::default(),
            preload: false,
            includes: Vec::new(),
            watched: Vec::new(),
            modules: Vec::new(),
            environment: None,
            reload_on_change: false,
            client_key: None,
            perl: PathBuf::from("perl"),
            mount: String::new(),
            label: None,
        }
    }

    /// Returns the name that tells it from other gateways of the application.
    pub(crate) fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.mount)
    }

    /// Returns the application's path for log and error messages.
    pub(crate) fn name(&self) -> String {
        self.application.display().to_string()
    }

    pub(crate) fn check(&self) -> Result<(), StartError> {
        self.limits.check().map_err(|error| StartError::Setting {
            setting: error.name(),
            problem: error.fault().to_owned(),
        })?;
        require(
            self.concurrency.requests_max() <= CONCURRENCY_MAX,
            "concurrency",
            || {
                format!(
                    "{}; at most {CONCURRENCY_MAX}",
                    self.concurrency.requests_max()
                )
            },
        )?;
        require(is_mount(&self.mount), "mount", || {
            format!(
                "`{}`; empty, or like `/shop`: a slash in front, none at the end, ASCII without \
                 blanks, `?`, `#`, `%`, `.` and `..`",
                self.mount
            )
        })?;
        self.check_words()
    }

    /// Checks the settings that become arguments of Perl.
    fn check_words(&self) -> Result<(), StartError> {
        for module in &self.modules {
            require(is_word(module), "module", || {
                format!(
                    "`{}`; a module's name, such as `Plack::Builder`",
                    module.escape_debug()
                )
            })?;
        }
        if let Some(environment) = &self.environment {
            require(is_word(environment), "environment", || {
                format!(
                    "`{}`; a name, such as `deployment`",
                    environment.escape_debug()
                )
            })?;
        }
        Ok(())
    }
}

fn require(
    holds: bool,
    setting: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), StartError> {
    if holds {
        return Ok(());
    }
    Err(StartError::Setting {
        setting,
        problem: problem(),
    })
}

/// Returns `true` if an application can be [mounted](crate::Builder::mount) below this: the empty
/// prefix, or one like `/shop` or `/a/b`. Mounts are compared with paths as they were sent, segment
/// by segment.
#[must_use]
pub fn is_mount(mount: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '%');
    let is_segment =
        |segment: &str| !matches!(segment, "" | "." | "..") && segment.chars().all(is_plain);
    let segments = mount.strip_prefix('/').map(|rest| rest.split('/'));
    mount.is_empty() || segments.is_some_and(|mut segments| segments.all(is_segment))
}

/// Returns `true` for a word that Perl cannot take for a flag or for the end of its arguments.
fn is_word(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && !word.contains('\0')
}
