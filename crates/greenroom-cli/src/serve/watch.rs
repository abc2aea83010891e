//! Changes of files, for --watch.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use notify_debouncer_mini::notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{DebounceEventResult, Debouncer, new_debouncer};
use tokio::sync::Notify;

/// The time for which changes are gathered: editors write in several steps.
const GATHERED: Duration = Duration::from_millis(200);

/// Watches the directories of files, since editors put a new file in the place of the old one.
pub(super) struct Watch {
    _watcher: Debouncer<RecommendedWatcher>,
    changed: Arc<Notify>,
}

impl Watch {
    pub(super) fn start(files: &[PathBuf]) -> anyhow::Result<Self> {
        let changed = Arc::new(Notify::new());
        let (told, files) = (Arc::clone(&changed), absolute(files));
        let directories: BTreeSet<PathBuf> = files
            .iter()
            .filter_map(|file| file.parent().map(Path::to_owned))
            .collect();
        let mut watcher = new_debouncer(GATHERED, move |events: DebounceEventResult| {
            let events = events.unwrap_or_default();
            if events.iter().any(|event| files.contains(&event.path)) {
                told.notify_one();
            }
        })
        .context("--watch: files cannot be watched")?;
        for directory in directories {
            let watching = watcher
                .watcher()
                .watch(&directory, RecursiveMode::NonRecursive);
            watching.with_context(|| format!("--watch: {}", directory.display()))?;
        }
        Ok(Self {
            _watcher: watcher,
            changed,
        })
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

fn absolute(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let files = files.iter();
    files
        .map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()))
        .collect()
}
