//! A server that is killed while it stores an upload, and the files it leaves behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use image::{DynamicImage, ImageFormat};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

use super::client::{Login, Outcome, Replicas};
use super::replica::Replica;
use crate::kit::entries;

/// Pictures of one upload: their files are stored one after the other.
const PICTURES: usize = 10;
/// Interval of polling.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Longest wait: tasks are looked for every few seconds, and old uploads every minute.
const PATIENCE: Duration = Duration::from_mins(3);

pub(crate) struct Uploads {
    pub(crate) replica: Replica,
    client: Arc<Replicas>,
    login: Login,
    album: String,
    directory: TempDir,
}

impl Uploads {
    /// Starts a server on which a user has an album with a picture, and files without a record are
    /// kept for a second only.
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let config = directory.path().join("social.toml");
        fs::write(&config, "[pictures]\nleftovers_after = \"1s\"\n").expect("there is room");
        let place = |name: &str| directory.path().join(name).display().to_string();
        let flags = [
            ["--config", &place("social.toml")],
            ["--store", &format!("sqlite:{}", place("social.db"))],
            ["--files", &place("files")],
            ["--sample", "false"],
        ];
        let flags = flags.into_iter().flatten().map(str::to_owned).collect();
        let replica = Replica::start(directory.path(), "social", flags).await;
        let client = Arc::new(Replicas::new(vec![replica.address]));
        client.sign_up("ada").await;
        let login = client.log_in("ada").await;
        let title = json!({"title": "Leftovers"});
        let album = client
            .insist(Some(&login), Method::POST, "/api/albums", Some(&title))
            .await;
        let album = album["id"].as_str().expect("it has one").to_owned();
        client.upload(&login, &album, vec![png()]).await;
        Self {
            replica,
            client,
            login,
            album,
            directory,
        }
    }

    /// Kills the server as soon as files of an upload are stored, and repeats it until that was in
    /// time.
    pub(crate) async fn kill_during_an_upload(&mut self) {
        loop {
            let before = self.stored().len();
            let (client, login) = (Arc::clone(&self.client), self.login.clone());
            let album = self.album.clone();
            let pictures = vec![png(); PICTURES];
            let upload =
                tokio::spawn(async move { client.try_upload(&login, &album, pictures).await });
            while self.stored().len() == before && !upload.is_finished() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            self.replica.kill();
            let outcome = upload.await.expect("it does not panic");
            if matches!(outcome, Outcome::Unknown) && !self.incoming().is_empty() {
                return;
            }
            self.replica.restart().await;
        }
    }

    /// Makes the files an hour older, as if the server had been down meanwhile.
    pub(crate) fn age(&self) {
        let written = SystemTime::now() - Duration::from_hours(1);
        for path in self.incoming() {
            let file = fs::File::options().write(true).open(path);
            let aged = file.and_then(|file| file.set_modified(written));
            aged.expect("the file is there");
        }
    }

    /// Waits until all files belong to pictures that have a record.
    pub(crate) async fn until_swept(&self) {
        let path = format!("/api/albums/{}/pictures?limit=60", self.album);
        let page = self.client.get(&path).await;
        let pictures = page["pictures"].as_array().expect("a page has pictures");
        let pictures: BTreeSet<&str> = pictures
            .iter()
            .filter_map(|picture| picture["id"].as_str())
            .collect();
        assert!(!pictures.is_empty(), "the first one is there");
        let is_swept = || {
            let stored = self.stored();
            let kept: BTreeSet<&str> = stored.iter().filter_map(|name| name.get(..32)).collect();
            self.incoming().is_empty() && kept == pictures
        };
        let swept = async {
            while !is_swept() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, swept).await;
        assert!(
            in_time.is_ok(),
            "left: {:?} and {:?} of {pictures:?}",
            self.incoming(),
            self.stored()
        );
    }

    fn incoming(&self) -> Vec<PathBuf> {
        entries(&self.directory.path().join("files/incoming"))
    }

    /// Returns the names of pictures' files, also of partial ones.
    fn stored(&self) -> Vec<String> {
        let shelves = entries(&self.directory.path().join("files"));
        let shelves = shelves.iter().filter(|path| !path.ends_with("incoming"));
        let name = |path: PathBuf| {
            let name = path.file_name().expect("it has a name");
            name.to_string_lossy().into_owned()
        };
        shelves.flat_map(|shelf| entries(shelf)).map(name).collect()
    }
}

fn png() -> Vec<u8> {
    let mut content = std::io::Cursor::new(Vec::new());
    DynamicImage::new_rgb8(40, 30)
        .write_to(&mut content, ImageFormat::Png)
        .expect("the picture is encoded");
    content.into_inner()
}
