//! The whole network, of real parts.

use std::path::Path;
use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

use super::client::{Login, Replicas};
use super::load::Load;
use super::mails;
use super::replica::Replica;
use super::verify;
use super::watcher::Watcher;
use crate::kit::ferretdb::FerretDb;
use crate::kit::redis::Redis;
use crate::kit::smtp::SmtpSink;

/// Users at work at a time.
const USERS: usize = 6;
/// Pictures that they like and comment on.
const PICTURES: usize = 6;

/// Replicas and what they need.
pub(crate) struct Network {
    pub(crate) replicas: Vec<Replica>,
    pub(crate) client: Arc<Replicas>,
    pub(crate) mails: SmtpSink,
    /// The external programs; `None` for the embedded network.
    foreign: Option<Foreign>,
    _directory: TempDir,
}

pub(crate) struct Foreign {
    pub(crate) database: FerretDb,
    pub(crate) redis: Redis,
}

/// Users at work, and clients that watch them.
pub(crate) struct Work {
    pub(crate) load: Load,
    pictures: Arc<Vec<String>>,
    watchers: Vec<Watcher>,
}

impl Network {
    /// Starts so many replicas on `FerretDB` and Redis.
    pub(crate) async fn start(replicas: usize) -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let foreign = Foreign {
            database: FerretDb::start().await,
            redis: Redis::start().await,
        };
        let files = directory.path().join("files");
        let mut flags = flags("--store", foreign.database.url("social").as_str());
        flags.extend(self::flags("--redis", foreign.redis.url().as_str()));
        flags.extend(self::flags("--files", &files.display().to_string()));
        Self::start_with(directory, replicas, flags, Some(foreign)).await
    }

    /// Starts one process that keeps everything at `path`.
    pub(crate) async fn embedded(path: &Path) -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let mut flags = flags(
            "--store",
            &format!("sqlite:{}", path.join("social.db").display()),
        );
        flags.extend(self::flags(
            "--files",
            &path.join("files").display().to_string(),
        ));
        Self::start_with(directory, 1, flags, None).await
    }

    async fn start_with(
        directory: TempDir,
        count: usize,
        mut flags: Vec<String>,
        foreign: Option<Foreign>,
    ) -> Self {
        let mails = SmtpSink::start();
        flags.extend(self::flags("--smtp", mails.url().as_str()));
        flags.extend(self::flags("--sample", "false"));
        let mut replicas = Vec::new();
        for number in 1..=count {
            let name = format!("replica{number}");
            replicas.push(Replica::start(directory.path(), &name, flags.clone()).await);
        }
        let addresses = replicas.iter().map(|replica| replica.address).collect();
        Self {
            replicas,
            client: Arc::new(Replicas::new(addresses)),
            mails,
            foreign,
            _directory: directory,
        }
    }

    pub(crate) fn foreign(&mut self) -> &mut Foreign {
        self.foreign.as_mut().expect("this network is not embedded")
    }

    /// Starts users, and clients that watch.
    pub(crate) async fn work(&self) -> Work {
        let owner = self.join("owner").await;
        let pictures = Arc::new(self.pictures(&owner).await);
        let mut logins = Vec::new();
        for number in 0..USERS {
            logins.push(self.join(&format!("user{number}")).await);
        }
        let topic = |picture: &String| {
            [
                format!("/picture/{picture}/likes"),
                format!("/picture/{picture}/comments"),
            ]
        };
        let topics: Vec<String> = pictures.iter().flat_map(topic).collect();
        let watcher = |first| Watcher::start(&self.client, topics.clone(), first);
        Work {
            watchers: (0..self.replicas.len() * 2).map(watcher).collect(),
            load: Load::start(&self.client, logins, &pictures),
            pictures,
        }
    }

    async fn join(&self, name: &str) -> Login {
        self.client.sign_up(name).await;
        self.client.log_in(name).await
    }

    async fn pictures(&self, owner: &Login) -> Vec<String> {
        let title = json!({"title": "All"});
        let album = self
            .client
            .insist(Some(owner), Method::POST, "/api/albums", Some(&title))
            .await;
        let album = album["id"].as_str().expect("an album has an identifier");
        self.client
            .upload(owner, album, vec![picture(); PICTURES])
            .await
    }

    /// Stops the work, and checks that all that was acknowledged is there, once.
    pub(crate) async fn check(&self, work: Work) {
        let done = work.load.stop().await;
        let ends = verify::check(&self.client, &work.pictures, &done).await;
        for watcher in work.watchers {
            watcher.until(&ends).await;
        }
        let signed_up = done.iter().flat_map(|done| done.signed_up.iter());
        mails::check(&self.mails, signed_up).await;
    }
}

fn flags(name: &str, value: &str) -> Vec<String> {
    vec![name.to_owned(), value.to_owned()]
}

fn picture() -> Vec<u8> {
    let mut content = std::io::Cursor::new(Vec::new());
    let picture = image::DynamicImage::new_rgb8(40, 30);
    picture
        .write_to(&mut content, image::ImageFormat::Png)
        .expect("a small picture is encoded");
    content.into_inner()
}
