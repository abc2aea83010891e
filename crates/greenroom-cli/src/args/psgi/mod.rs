//! Flags of PSGI applications.

mod code;
mod mount;
mod pool;

use std::path::{Path, PathBuf};

use greenroom::Limits;
use greenroom::psgi::{Builder, Gateway};

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

    pub(super) fn is_attached(&self) -> bool {
        self.attach.is_some()
    }

    /// Returns the code of -e, around `file` or the application of --app if there is one, as the
    /// text of a file.
    pub(super) fn code(&self, file: Option<&Path>) -> Option<String> {
        let code = self.evaluate.as_deref()?;
        Some(code::file(code, &self.module, file.or(self.app.as_deref())))
    }

    /// Returns the applications: that of `file` or of --app, if there is one, and then the mounts.
    /// `code` is the file that holds the code of -e around the first.
    pub(super) fn gateways(
        &self,
        code: Option<&Path>,
        file: Option<&Path>,
        limits: &Limits,
    ) -> Gateways {
        let builder = |file: &Path, changes: &PoolChanges| {
            let builder = self.pool.changed(changes).apply(self.common(file));
            builder
                .drain_deadline(limits.drain_deadline)
                .body_bytes_max(limits.body_bytes_max)
        };
        let unchanged = PoolChanges::default();
        if let Some(directory) = &self.attach {
            let attached = builder(Path::new(ATTACHED), &unchanged);
            return Gateways::Attached(Box::new(attached), directory.clone());
        }
        let file = file.or(self.app.as_deref());
        let main = code.or(file).map(|main| {
            let builder = builder(main, &unchanged);
            match (code, file.and_then(Path::parent)) {
                // It stands elsewhere.
                (Some(_), Some(directory)) => builder.watch(directory),
                _ => builder,
            }
        });
        let mounts = self.mount.iter();
        let mounts = mounts.map(|mount| builder(&mount.file, &mount.changes).mount(&mount.prefix));
        Gateways::Started(main.into_iter().chain(mounts).collect())
    }

    /// Returns a builder with the settings that all applications share.
    fn common(&self, file: &Path) -> Builder {
        let mut builder = Gateway::builder(file)
            .environment(self.environment())
            .reload_on_change(self.reload)
            .perl(&self.perl);
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
