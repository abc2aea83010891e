//! Two processes that serve the web, one of them this one, with NATS, a storage and a directory
//! that they share.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use greenroom_test_servers::NatsServer;
use serde_json::Value;
use social::config::{FilesSettings, NatsSettings, StoreSettings};
use tempfile::TempDir;
use url::Url;

use super::process::Process;
use crate::kit::app::{Client, TestApp};
use crate::kit::ferretdb::FerretDb;
use crate::kit::port;

/// The time after which a process counts as dead.
const LEASE: Duration = Duration::from_secs(2);

pub(crate) struct Webs {
    /// The process of the test.
    pub(crate) here: TestApp,
    /// A process of its own, which can be killed.
    pub(crate) there: Process,
    pub(crate) nats: NatsServer,
    address: String,
    _store: FerretDb,
    _directory: TempDir,
}

/// A user who is logged in at both processes.
pub(crate) struct Both {
    pub(crate) here: Client,
    pub(crate) there: Client,
}

impl Webs {
    pub(crate) async fn start() -> Self {
        let nats = NatsServer::settings().jet_stream().start();
        let store = FerretDb::start().await;
        let url = store.patient_url("social");
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let files = directory.path().join("files");
        let address = format!("127.0.0.1:{}", port::free_port());
        let config = format!(
            "listen = [{address:?}]\nstore = {:?}\nfiles = \"{}\"\nsample = false\n\
             [nats]\nservers = [{:?}]\nlease = \"{}s\"\n\
             [limits]\nchanges = 0\nuploads = 0\nrequests = 0\n",
            url.as_str(),
            files.display(),
            nats.url(),
            LEASE.as_secs()
        );
        let config_file: PathBuf = directory.path().join("web.toml");
        fs::write(&config_file, config).expect("there is room");
        let servers: Vec<Url> = vec![nats.url().parse().expect("a URL")];
        let here = TestApp::with(|settings| {
            settings.store = StoreSettings::Mongo(url);
            settings.files = FilesSettings::Directory(files);
            settings.nats = Some(NatsSettings {
                servers,
                lease: LEASE,
                ..NatsSettings::default()
            });
        });
        Self {
            here: here.await,
            there: Process::start(&config_file, &directory.path().join("there")).await,
            nats,
            address,
            _store: store,
            _directory: directory,
        }
    }

    pub(crate) async fn user(&self, name: &str) -> Both {
        let here = self.here.user(name).await;
        let there = here.clone().at(&self.address);
        Both { here, there }
    }

    /// Makes an album with a picture, which is in the memory of this process.
    pub(crate) async fn album_here(&self, user: &Both) -> String {
        loop {
            let before = self.activated_here();
            let album = album(user).await;
            if self.activated_here() > before {
                return album;
            }
        }
    }

    /// Makes an album with a picture, which is in the memory of the other process.
    pub(crate) async fn album_there(&self, user: &Both) -> String {
        loop {
            let before = self.activated_there().await;
            let album = album(user).await;
            if self.activated_there().await > before {
                return album;
            }
        }
    }

    /// Returns the number of times that an album came into the memory of this process.
    pub(crate) fn activated_here(&self) -> u64 {
        let clusters = self.here.status().clusters;
        clusters[0].hosts.iter().map(|host| host.activated).sum()
    }

    async fn activated_there(&self) -> u64 {
        let (_, text) = self.there.get("/greenroom/status").await;
        let status: Value = serde_json::from_str(&text).expect("it is JSON");
        let hosts = status["clusters"][0]["hosts"].as_array();
        let hosts = hosts.expect("it has albums").iter();
        hosts.filter_map(|host| host["activated"].as_u64()).sum()
    }
}

async fn album(user: &Both) -> String {
    let album = user.here.album("Hot").await;
    user.here.picture(&album).await;
    album
}
