//! The web in this process, NATS, and a directory that all share.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use greenroom_test_servers::NatsServer;
use social::config::{FilesSettings, NatsSettings, Role};
use tempfile::TempDir;
use url::Url;

use super::process::Process;
use crate::kit::app::TestApp;
use crate::kit::entries;

/// The time after which a process counts as dead: a killed one is missed as soon as this.
const LEASE: Duration = Duration::from_secs(6);
/// Interval of looking for files.
const LOOK_EVERY: Duration = Duration::from_millis(2);

pub(crate) struct Network {
    pub(crate) web: TestApp,
    directory: TempDir,
    _nats: NatsServer,
}

impl Network {
    /// Starts the web, and the outbox with it, without a process for pictures.
    pub(crate) async fn start() -> Self {
        let nats = NatsServer::settings().jet_stream();
        let nats = nats.user("social", "a / secret").start();
        let mut url: Url = nats.url().parse().expect("a URL");
        url.set_username("social").expect("it has a host");
        url.set_password(Some("a / secret")).expect("it has a host");
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let files = directory.path().join("files");
        let config = format!(
            "role = \"images\"\nfiles = \"{}\"\n\
             [nats]\nservers = [{:?}]\nlease = \"{}s\"\n",
            files.display(),
            url.as_str(),
            LEASE.as_secs()
        );
        fs::write(config_of(directory.path()), config).expect("there is room");
        let servers = vec![url];
        let web = TestApp::with(|settings| {
            settings.role = vec![Role::Web, Role::Outbox];
            settings.files = FilesSettings::Directory(files);
            settings.nats = Some(NatsSettings {
                servers,
                lease: LEASE,
                ..NatsSettings::default()
            });
        });
        Self {
            web: web.await,
            directory,
            _nats: nats,
        }
    }

    /// Starts a process for pictures.
    pub(crate) async fn images(&self, name: &str) -> Process {
        let directory = self.directory.path();
        Process::start(&config_of(directory), &directory.join(name)).await
    }

    /// Returns the names of all files of pictures, and of uploads under way.
    pub(crate) fn files(&self) -> Vec<String> {
        let shelves = entries(&self.directory.path().join("files"));
        let name = |path: PathBuf| path.display().to_string();
        let files = shelves.iter().flat_map(|shelf| entries(shelf));
        files.map(name).collect()
    }

    /// Waits until there are more files of pictures than this beside those that are received: the
    /// original of an upload is stored.
    pub(crate) async fn more_files_than(&self, before: usize) {
        let is_stored = |file: &String| !file.contains("/incoming/");
        while self.files().into_iter().filter(is_stored).count() <= before {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

fn config_of(directory: &Path) -> PathBuf {
    directory.join("images.toml")
}
