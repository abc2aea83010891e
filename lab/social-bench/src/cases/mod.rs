//! The cases, in the order of the table of goals.

mod feed;
mod likes;
mod replicas;
mod share;
mod uploads;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use bench_kit::{Binaries, Report, lab_directory};
use clap::ValueEnum;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::args::Args;
use crate::load::Load;
use crate::site::{Client, Social, Storage, User, small_png};

const MILLIS_PER_SECOND: f64 = 1_000.0;
const PERCENT: f64 = 100.0;
const NANOS_PER_MILLI: f64 = 1e6;
/// Rounds of cases in which a round takes long.
const LONG_ROUNDS_MAX: usize = 3;

/// The tools of a case.
pub(crate) struct Context {
    binaries: Binaries,
    /// The runtime for requests that are not load.
    pub(crate) runtime: Runtime,
    ferretdb: PathBuf,
    rounds: usize,
    seconds: u32,
    quick: bool,
}

/// A replica of its own, with its data; it ends with this value.
pub(crate) struct Alone {
    pub(crate) social: Social,
    pub(crate) client: Client,
    directory: TempDir,
}

impl Context {
    pub(crate) fn new(args: &Args, binaries: Binaries) -> anyhow::Result<Self> {
        let default = || lab_directory().join("../target/tools/ferretdb/ferretdb");
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build();
        Ok(Self {
            binaries,
            runtime: runtime.context("a runtime")?,
            ferretdb: args.ferretdb.clone().unwrap_or_else(default),
            rounds: args.run.rounds(),
            seconds: args.run.seconds(),
            quick: args.run.quick,
        })
    }

    fn social(&self) -> anyhow::Result<&Path> {
        self.binaries.path("social")
    }

    fn load(&self) -> anyhow::Result<Load> {
        Ok(Load::new(self.binaries.path("greenroom")?.to_owned()))
    }

    /// Returns the whole number, or a tenth of it in a quick run.
    fn share_of(&self, whole: usize) -> usize {
        if self.quick {
            whole.div_ceil(10)
        } else {
            whole
        }
    }

    /// Returns the rounds of a case in which a round takes long.
    fn long_rounds(&self) -> usize {
        self.rounds
            .min(if self.quick { 1 } else { LONG_ROUNDS_MAX })
    }

    /// Starts a replica with `SQLite`, without users. `toml` is its further configuration.
    fn start_alone(&self, toml: &str) -> anyhow::Result<Alone> {
        let directory = TempDir::new().context("a directory")?;
        let program = self.social()?;
        let social = Social::start(
            program,
            "social",
            directory.path(),
            &Storage::Embedded,
            toml,
        )?;
        let client = Client::new(social.url(""))?;
        Ok(Alone {
            social,
            client,
            directory,
        })
    }

    /// Adds small pictures of a new user.
    fn add_pictures(&self, client: &Client, owner: &str, count: usize) -> anyhow::Result<Pictures> {
        let png: Arc<[u8]> = small_png()?.into();
        self.runtime.block_on(async {
            let owner = client.sign_up(owner).await?;
            let album = owner.add_album("Small pictures").await?;
            let ids = owner.add_pictures(&album, &png, count).await?;
            Ok(Pictures { owner, album, ids })
        })
    }
}

impl Alone {
    /// Returns the size of its database, as the file system reports it, in MiB.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
    fn database_mib(&self) -> f64 {
        let file = self.directory.path().join("social.db");
        let bytes = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        bytes as f64 / f64::from(1 << 20)
    }
}

/// Pictures and their owner.
struct Pictures {
    owner: User,
    album: String,
    ids: Vec<String>,
}

/// One row of the table of goals, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
pub(crate) enum Case {
    /// Likes with SQLite: as many as it can, then 5,000/s
    Likes,
    /// The timeline while 50 pictures of 12 megapixels are uploaded at once
    Uploads,
    /// 5,000 clients of the feed, all of the same ten pictures
    Feed,
    /// 5,000 clients of the feed, each of one picture of a hundred
    FeedSpread,
    /// 5,000 clients of the feed at two replicas, with FerretDB and Redis
    FeedReplicas,
    /// The timeline while a third party hangs
    Share,
    /// Three replicas behind HAProxy, one of which is killed
    Replicas,
}

impl Case {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Likes => "likes",
            Self::Uploads => "uploads",
            Self::Feed => "feed",
            Self::FeedSpread => "feed-spread",
            Self::FeedReplicas => "feed-replicas",
            Self::Share => "share",
            Self::Replicas => "replicas",
        }
    }

    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Report> {
        match self {
            Self::Likes => likes::run(context),
            Self::Uploads => uploads::run(context),
            Self::Feed => feed::SAME.run(context),
            Self::FeedSpread => feed::SPREAD.run(context),
            Self::FeedReplicas => feed::REPLICAS.run(context),
            Self::Share => share::run(context),
            Self::Replicas => replicas::run(context),
        }
    }
}
