//! Changes of files, for --watch.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::FutureExt;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher, recommended_watcher};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep;

/// The time for which changes are gathered: editors write in several steps.
const GATHERED: Duration = Duration::from_millis(200);

/// The most links on the way to a file, as the system has it.
const LINKS_MAX: usize = 40;

/// Watches the directories of files, since editors put a new file in the place of the old one, and
/// those of the links on the way there, since `ConfigMap`s of Kubernetes exchange a link.
pub(super) struct Watch {
    watcher: RecommendedWatcher,
    /// The files and links, and their directories, which may be moved away.
    places: Arc<Mutex<BTreeSet<PathBuf>>>,
    directories: BTreeSet<PathBuf>,
    changed: Arc<Notify>,
}

impl Watch {
    pub(super) fn start(files: &[PathBuf]) -> anyhow::Result<Self> {
        let changed = Arc::new(Notify::new());
        let places = Arc::new(Mutex::new(BTreeSet::new()));
        let (told, known) = (Arc::clone(&changed), Arc::clone(&places));
        let watcher = recommended_watcher(move |event: notify::Result<Event>| {
            // Without a path, events were lost, and any of the files may have changed.
            let concerns = |event: Event| {
                let known = known.lock();
                event.paths.is_empty() || event.paths.iter().any(|path| known.contains(path))
            };
            if event.is_ok_and(|event| is_change(event.kind) && concerns(event)) {
                told.notify_one();
            }
        })
        .context("--watch: files cannot be watched")?;
        let mut watch = Self {
            watcher,
            places,
            directories: BTreeSet::new(),
            changed,
        };
        watch.renew(files)?;
        Ok(watch)
    }

    /// Watches these files in place of those before; returns `true` if a directory is new. What
    /// cannot be watched is left out, with a warning.
    ///
    /// # Errors
    ///
    /// If the directory of one of the files cannot be watched, links resolved.
    pub(super) fn renew(&mut self, files: &[PathBuf]) -> anyhow::Result<bool> {
        let parent = |place: &PathBuf| place.parent().map(Path::to_owned);
        let all: Vec<Vec<PathBuf>> = files.iter().map(|file| places(file)).collect();
        let own: BTreeSet<PathBuf> = all
            .iter()
            .filter_map(|places| parent(places.last()?))
            .collect();
        let places: BTreeSet<PathBuf> = all.into_iter().flatten().collect();
        let wanted: BTreeSet<PathBuf> = places.iter().filter_map(parent).collect();
        *self.places.lock() = &places | &wanted;
        for directory in &self.directories - &wanted {
            // It may be gone, and is not watched any more then.
            let _gone = self.watcher.unwatch(&directory);
        }
        let has_new = !wanted.is_subset(&self.directories);
        self.directories.clear();
        let mut outcome = Ok(has_new);
        // All of them: a directory may be another of the same name by now, or have lost its watch
        // with another name of its own.
        for directory in wanted {
            match self.watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.directories.insert(directory);
                }
                Err(error) if own.contains(&directory) => {
                    let said = format!("--watch: {}", directory.display());
                    outcome = Err(error).context(said);
                }
                Err(error) => {
                    let directory = directory.display();
                    tracing::warn!("--watch: {directory}: {error}; links there are not watched");
                }
            }
        }
        outcome
    }

    /// Waits for changes, and gathers those that follow.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
        sleep(GATHERED).await;
        // Those that were gathered meanwhile.
        let _gathered = self.changed.notified().now_or_never();
    }
}

/// Returns `true` unless a file was only opened or read, as a reload itself does.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// Returns the path of a file, each link on the way there, and the path to which they lead: each in
/// the one name of its directory, as the system tells events of a directory by one name only.
fn places(file: &Path) -> Vec<PathBuf> {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let mut found = vec![named_once(&whole)];
    let mut path = whole;
    for _ in 0..LINKS_MAX {
        let Some((link, beyond)) = first_link(&path) else {
            break;
        };
        found.push(named_once(&link));
        path = beyond;
        found.push(named_once(&path));
    }
    found
}

/// Returns a path with all links of its directory resolved; as it is where they lead nowhere.
fn named_once(path: &Path) -> PathBuf {
    let directory = path.parent().and_then(|parent| parent.canonicalize().ok());
    match directory.zip(path.file_name()) {
        Some((directory, name)) => directory.join(name),
        None => path.to_owned(),
    }
}

/// Returns the first link in a path, and the path beyond it.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut before = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        if part == Component::ParentDir {
            before.pop();
            continue;
        }
        let place = before.join(part);
        if let Ok(target) = place.read_link() {
            let beyond = before.join(target).join(parts.as_path());
            return Some((place, beyond));
        }
        before = place;
    }
    None
}
