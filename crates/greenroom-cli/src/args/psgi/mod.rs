//! Flags of PSGI applications.

mod code;
mod mount;
mod pool;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use greenroom::psgi::{Builder, Gateway};

use super::value;
use mount::Mount;
use pool::{PoolArgs, PoolChanges};

pub(super) const HEADING: &str = "PSGI application";

/// The name of the application of `plackup -s Greenroom`: it was loaded elsewhere, and has no file.
const ATTACHED: &str = "plackup";

#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
#[command(next_help_heading = HEADING)]
pub(crate) struct PsgiArgs {
    /// Another way to name the application's file
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    app: Option<PathBuf>,

    /// Perl code whose value is the application, as for plackup: within Plack::Builder, before an
    /// application that is named
    ///
    /// -e 'sub { [200, [], [42]] }' is an application; -e 'enable "Deflater"' app.psgi wraps one.
    /// Needs Plack.
    #[arg(short, value_name = "CODE")]
    evaluate: Option<String>,

    /// A further application, with workers of its own, below a path: '/prefix=FILE workers=N'; may
    /// be repeated
    ///
    /// Behind the file may stand any of workers=N, concurrency=M, preload=yes|no, timeout=TIME,
    /// max-requests=R and max-rss=SIZE; everything else is as for the main application. A file
    /// whose name has spaces is put in quotes.
    #[arg(long, value_name = "MOUNT")]
    mount: Vec<Mount>,

    #[command(flatten)]
    pool: PoolArgs,

    /// Directory in which Perl looks for modules first; may be repeated
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,

    /// Module to load before the application; may be repeated
    #[arg(short = 'M', value_name = "MODULE")]
    module: Vec<String>,

    /// Name of the environment, which the application finds in PLACK_ENV (default: that of this
    /// process, else deployment)
    #[arg(
        short = 'E',
        long = "env",
        env = "GREENROOM_ENV",
        value_name = "NAME",
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    environment: Option<String>,

    /// Start new workers when the application's files change
    #[arg(short = 'r', long, env = "GREENROOM_RELOAD")]
    reload: bool,

    /// Perl, as a path or as a name to be searched
    #[arg(
        long,
        env = "GREENROOM_PERL",
        value_name = "PATH",
        default_value = "perl"
    )]
    perl: PathBuf,

    /// Longest time that the application may take to load
    #[arg(
        long,
        env = "GREENROOM_START_TIMEOUT",
        value_name = "TIME",
        default_value = "1m",
        value_parser = value::positive_time
    )]
    start_timeout: Duration,

    /// Requests that may wait for a worker; 503 beyond
    #[arg(
        long,
        env = "GREENROOM_WORKER_QUEUE_MAX",
        value_name = "NUMBER",
        default_value = "16384",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    worker_queue_max: u32,

    /// Longest wait of a request for a worker; 503 for those that would wait longer
    #[arg(
        long,
        env = "GREENROOM_WORKER_QUEUE_WAIT_MAX",
        value_name = "TIME",
        default_value = "10s",
        value_parser = value::positive_time
    )]
    worker_queue_wait_max: Duration,

    /// Size of a request's body that is kept in memory until it is complete; in a file beyond
    #[arg(
        long,
        env = "GREENROOM_BODY_MEMORY_MAX",
        value_name = "SIZE",
        default_value = "64KiB",
        value_parser = value::size
    )]
    body_memory_max: ByteSize,

    /// Size of all bodies of requests that an application's workers have not responded to, in
    /// memory and in files; 503 beyond
    #[arg(
        long,
        env = "GREENROOM_UPLOADS_BYTES_MAX",
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = value::positive_size
    )]
    uploads_bytes_max: ByteSize,

    /// Serve the application that plackup has loaded, by way of standard input and this directory
    #[arg(
        long,
        value_name = "DIR",
        hide = true,
        conflicts_with_all = ["app", "evaluate", "file", "mount"]
    )]
    attach: Option<PathBuf>,
}

/// The PSGI applications to start.
#[derive(Debug)]
pub(crate) enum Gateways {
    /// Applications with workers that this process starts.
    Started(Vec<Builder>),
    /// The application whose zygote started this process, and its directory.
    Attached(Box<Builder>, PathBuf),
}

impl PsgiArgs {
    pub(super) fn names_application(&self) -> bool {
        let is_named = self.app.is_some() || self.evaluate.is_some();
        is_named || self.attach.is_some() || !self.mount.is_empty()
    }

    /// Returns the code of -e, around `file` or the application of --app if there is one, as the
    /// text of a file.
    pub(super) fn code(&self, file: Option<&Path>) -> Option<String> {
        let code = self.evaluate.as_deref()?;
        Some(code::file(code, &self.module, file.or(self.app.as_deref())))
    }

    /// Returns the applications: that of `file` or of --app, if there is one, and then the mounts.
    pub(super) fn gateways(
        &self,
        file: Option<&Path>,
        drain_deadline: Duration,
        body_bytes_max: u64,
    ) -> Gateways {
        let builder = |file: &Path, changes: &PoolChanges| {
            let builder = self
                .common(file)
                .drain_deadline(drain_deadline)
                .body_bytes_max(body_bytes_max);
            self.pool.changed(changes).apply(builder)
        };
        let unchanged = PoolChanges::default();
        if let Some(directory) = &self.attach {
            let attached = builder(Path::new(ATTACHED), &unchanged);
            return Gateways::Attached(Box::new(attached), directory.clone());
        }
        let main = file.or(self.app.as_deref());
        let main = main.map(|file| builder(file, &unchanged));
        let mounts = self.mount.iter();
        let mounts = mounts.map(|mount| builder(&mount.file, &mount.changes).mount(&mount.prefix));
        Gateways::Started(main.into_iter().chain(mounts).collect())
    }

    /// Returns a builder with the settings that all applications share.
    fn common(&self, file: &Path) -> Builder {
        let mut builder = Gateway::builder(file)
            .environment(self.environment())
            .reload_on_change(self.reload)
            .perl(&self.perl)
            .start_timeout(self.start_timeout)
            .queue_max(usize::try_from(self.worker_queue_max).unwrap_or(usize::MAX))
            .queue_wait_max(self.worker_queue_wait_max)
            .uploads_bytes_max(self.uploads_bytes_max.as_u64())
            .body_memory_max(usize::try_from(self.body_memory_max.as_u64()).unwrap_or(usize::MAX));
        for directory in &self.include {
            builder = builder.include(directory);
        }
        for module in &self.module {
            builder = builder.module(module);
        }
        builder
    }

    /// Returns the name of the environment. clap reads one variable for each flag, and users of
    /// Plack have this one.
    fn environment(&self) -> String {
        let said = self.environment.clone();
        said.or_else(|| {
            std::env::var("PLACK_ENV")
                .ok()
                .filter(|name| !name.is_empty())
        })
        .unwrap_or_else(|| "deployment".to_owned())
    }

    /// Returns a prefix with two mounts, of which the second could never be reached.
    pub(super) fn repeated_prefix(&self) -> Option<&str> {
        let mut mounts = self.mount.iter().enumerate();
        let repeated = mounts.find(|(index, mount)| {
            let mut before = self.mount[..*index].iter();
            before.any(|other| other.prefix == mount.prefix)
        });
        repeated.map(|(_, mount)| mount.prefix.as_str())
    }
}
