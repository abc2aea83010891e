//! Changes of files, for --watch.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use notify_debouncer_mini::notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{DebounceEventResult, Debouncer, new_debouncer};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The time for which changes are gathered: editors write in several steps.
const GATHERED: Duration = Duration::from_millis(200);

/// The most links on the way to a file, as the system has it.
const LINKS_MAX: usize = 40;

/// Watches the directories of files, since editors put a new file in the place of the old one, and
/// those of the links on the way there, since `ConfigMap`s of Kubernetes exchange a link.
pub(super) struct Watch {
    watcher: Debouncer<RecommendedWatcher>,
    /// The files and links.
    places: Arc<Mutex<BTreeSet<PathBuf>>>,
    directories: BTreeSet<PathBuf>,
    changed: Arc<Notify>,
}

impl Watch {
    pub(super) fn start(files: &[PathBuf]) -> anyhow::Result<Self> {
        let changed = Arc::new(Notify::new());
        let places = Arc::new(Mutex::new(BTreeSet::new()));
        let (told, known) = (Arc::clone(&changed), Arc::clone(&places));
        let watcher = new_debouncer(GATHERED, move |events: DebounceEventResult| {
            let (events, known) = (events.unwrap_or_default(), known.lock());
            if events.iter().any(|event| known.contains(&event.path)) {
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

    /// Watches these files in place of those before. What cannot be watched is left out.
    ///
    /// # Errors
    ///
    /// If a directory cannot be watched; of several, that of one.
    pub(super) fn renew(&mut self, files: &[PathBuf]) -> anyhow::Result<()> {
        let places: BTreeSet<PathBuf> = files.iter().flat_map(|file| places(file)).collect();
        let parents = places.iter().filter_map(|place| place.parent());
        let wanted: BTreeSet<PathBuf> = parents.map(Path::to_owned).collect();
        *self.places.lock() = places;
        let mut outcome = Ok(());
        for directory in &wanted - &self.directories {
            let watcher = self.watcher.watcher();
            match watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.directories.insert(directory);
                }
                Err(error) => {
                    let said = format!("--watch: {}", directory.display());
                    outcome = Err(error).context(said);
                }
            }
        }
        for directory in &self.directories - &wanted {
            // It may be gone, and is not watched any more then.
            let _gone = self.watcher.watcher().unwatch(&directory);
            self.directories.remove(&directory);
        }
        outcome
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Returns the path of a file, each link on the way there, and the path to which they lead.
fn places(file: &Path) -> Vec<PathBuf> {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let mut found = vec![whole.clone()];
    let mut path = whole;
    for _ in 0..LINKS_MAX {
        let Some((link, beyond)) = first_link(&path) else {
            break;
        };
        found.push(link);
        path = beyond;
        found.push(path.clone());
    }
    found
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
