//! The settings of an application, their limits and defaults.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use greenroom_stage::ClientKey;

use crate::error::StartError;
use crate::uploads::Uploads;

/// The maximal number of workers of one application.
pub const WORKERS_MAX: usize = 1_024;

/// The default limit of a request's body in bytes: 2 MiB.
pub const BODY_BYTES_MAX: u64 = 2 * 1_024 * 1_024;

/// The most bytes of a request's body that can be held in memory: 16 MiB.
pub const BODY_MEMORY_MAX: usize = 16 * 1_024 * 1_024;

/// The default limit of bytes that the bodies of an application's requests take in all: 1 GiB.
pub const UPLOADS_BYTES_MAX: u64 = 1_024 * 1_024 * 1_024;

/// The most requests at once that a worker can be given: a million.
pub const CONCURRENCY_MAX: u32 = 1_000_000;

/// The default limit of requests that are at a worker at once: 10,000.
pub const REQUESTS_MAX: u32 = 10_000;

/// The default limit of requests that wait for an application's workers: 16,384.
pub const QUEUE_MAX: usize = 16_384;

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

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) application: PathBuf,
    pub(crate) workers: usize,
    pub(crate) concurrency: Concurrency,
    pub(crate) preload: bool,
    pub(crate) includes: Vec<PathBuf>,
    pub(crate) modules: Vec<String>,
    pub(crate) environment: Option<String>,
    pub(crate) reload_on_change: bool,
    pub(crate) max_requests: Option<u64>,
    pub(crate) max_rss: Option<u64>,
    pub(crate) timeout: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) drain_deadline: Duration,
    pub(crate) queue_max: usize,
    pub(crate) queue_wait_max: Duration,
    pub(crate) client_key: Option<ClientKey>,
    pub(crate) body_bytes_max: u64,
    pub(crate) body_memory_max: usize,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) perl: PathBuf,
    pub(crate) mount: String,
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
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            application,
            workers: cores,
            concurrency: Concurrency::default(),
            preload: false,
            includes: Vec::new(),
            modules: Vec::new(),
            environment: None,
            reload_on_change: false,
            max_requests: None,
            max_rss: None,
            timeout: Duration::from_mins(1),
            start_timeout: Duration::from_mins(1),
            drain_deadline: Duration::from_secs(30),
            queue_max: QUEUE_MAX,
            queue_wait_max: Duration::from_secs(10),
            client_key: None,
            body_bytes_max: BODY_BYTES_MAX,
            body_memory_max: 64 * 1_024,
            uploads: Uploads::new(UPLOADS_BYTES_MAX),
            perl: PathBuf::from("perl"),
            mount: String::new(),
        }
    }

    /// Returns the application's path for log and error messages.
    pub(crate) fn name(&self) -> String {
        self.application.display().to_string()
    }

    pub(crate) fn check(&self) -> Result<(), StartError> {
        require((1..=WORKERS_MAX).contains(&self.workers), "workers", || {
            format!("{}; 1 to {WORKERS_MAX} are allowed", self.workers)
        })?;
        require(self.queue_max > 0, "queue_max", || {
            String::from("0; at least 1")
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
        require(
            self.body_memory_max <= BODY_MEMORY_MAX,
            "body_memory_max",
            || format!("{} bytes; at most {BODY_MEMORY_MAX}", self.body_memory_max),
        )?;
        require(self.max_requests != Some(0), "max_requests", || {
            String::from("0; at least 1")
        })?;
        require(self.max_rss != Some(0), "max_rss", || {
            String::from("0 bytes; at least 1")
        })?;
        for (setting, time) in [
            ("timeout", self.timeout),
            ("start_timeout", self.start_timeout),
            ("queue_wait_max", self.queue_wait_max),
        ] {
            require(time >= Duration::from_millis(1), setting, || {
                format!("{time:?}; at least 1 ms")
            })?;
        }
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
