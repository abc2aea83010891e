//! Watches files below the application's directories for changes.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{DebounceEventResult, Debouncer, new_debouncer};
use tokio::sync::mpsc;

use crate::error::StartError;
use crate::settings::Settings;

/// The time for which changes are gathered.
const GATHER: Duration = Duration::from_millis(200);

/// The most gatherings that may wait. When the queue is full, a reload is due in any case.
const GATHERINGS_MAX: usize = 16;

/// The endings of names of files that are no part of an application: backups and logs.
const IGNORED_ENDS: &[&str] = &["~", ".bak", ".log"];

/// A watch over directories; it ends when the value is dropped.
pub(super) struct Files {
    changes: mpsc::Receiver<Vec<PathBuf>>,
    seen: Seen,
    roots: Vec<PathBuf>,
    _watcher: Debouncer<RecommendedWatcher>,
}

impl Files {
    /// Watches the application's directory and those that were included.
    pub(super) fn watch(settings: &Settings) -> Result<Self, StartError> {
        let failed = |source| StartError::Watch { source };
        let (tell, changes) = mpsc::channel(GATHERINGS_MAX);
        let seen = Seen::new(SystemTime::now());
        let mut watcher = new_debouncer(GATHER, move |events: DebounceEventResult| match events {
            Ok(events) => {
                let paths = events.into_iter().map(|event| event.path).collect();
                // Full: enough to do already. Closed: no receiver is left.
                tell.try_send(paths).ok();
            }
            Err(error) => tracing::warn!("files are not watched as they should be: {error}"),
        })
        .map_err(failed)?;
        let roots = roots(settings);
        for root in &roots {
            let watch = watcher.watcher().watch(root, RecursiveMode::Recursive);
            watch.map_err(failed)?;
        }
        Ok(Self {
            changes,
            seen,
            roots,
            _watcher: watcher,
        })
    }

    /// Waits for changes that count, and returns the files; never returns without.
    pub(super) async fn changed(&mut self) -> Vec<PathBuf> {
        while let Some(mut paths) = self.changes.recv().await {
            paths.retain(|path| self.counts(path));
            if !paths.is_empty() {
                return paths;
            }
        }
        std::future::pending().await
    }

    fn counts(&mut self, path: &Path) -> bool {
        let below = self
            .roots
            .iter()
            .find_map(|root| path.strip_prefix(root).ok());
        !path.is_dir() && !is_ignored(below.unwrap_or(path)) && self.seen.is_new(path)
    }
}

/// Returns the application's directory, and the included and watched ones that exist.
fn roots(settings: &Settings) -> Vec<PathBuf> {
    let directory = settings.application.parent().unwrap_or(Path::new(""));
    let others = settings.includes.iter().chain(&settings.watched);
    let all = std::iter::once(directory).chain(others.map(PathBuf::as_path));
    let all = all.map(|path| match path {
        path if path.as_os_str().is_empty() => Path::new("."),
        path => path,
    });
    let mut roots: Vec<_> = all.filter_map(|path| fs::canonicalize(path).ok()).collect();
    roots.sort();
    // A parent comes before what is below it.
    roots.dedup_by(|below, above| below.starts_with(above));
    roots
}

/// Returns `true` for hidden files, backups and logs.
fn is_ignored(path: &Path) -> bool {
    let mut names = path.iter().map(|name| name.to_string_lossy());
    let is_hidden = names.any(|name| name.starts_with('.'));
    let path = path.to_string_lossy();
    is_hidden || IGNORED_ENDS.iter().any(|end| path.ends_with(end))
}

/// The state of files, kept because reading a file raises an event like a change.
struct Seen {
    since: Duration,
    files: HashMap<PathBuf, Option<Fingerprint>>,
}

/// A fingerprint that changes with a file's content, name and permissions (`st_ctim` of stat(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    inode: u64,
    changed: Duration,
}

impl Seen {
    fn new(since: SystemTime) -> Self {
        Self {
            since: since.duration_since(UNIX_EPOCH).unwrap_or_default(),
            files: HashMap::new(),
        }
    }

    /// Returns `true` if a file has changed, and keeps its state.
    fn is_new(&mut self, path: &Path) -> bool {
        let fingerprint = fingerprint(path);
        match self.files.insert(path.to_path_buf(), fingerprint) {
            Some(before) => before != fingerprint,
            None => fingerprint.is_none_or(|fingerprint| fingerprint.changed >= self.since),
        }
    }
}

/// Returns a file's fingerprint; `None` if it does not exist.
fn fingerprint(path: &Path) -> Option<Fingerprint> {
    let metadata = fs::metadata(path).ok()?;
    let seconds = u64::try_from(metadata.ctime()).ok()?;
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).ok()?;
    Some(Fingerprint {
        inode: metadata.ino(),
        changed: Duration::new(seconds, nanoseconds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_backups_and_logs_do_not_count() {
        for path in [
            ".git/index",
            "lib/.App.pm.swp",
            "app.psgi~",
            "a.bak",
            "log/access.log",
        ] {
            assert!(is_ignored(Path::new(path)), "{path}");
        }
        for path in ["app.psgi", "lib/App.pm", "share/page.html"] {
            assert!(!is_ignored(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_file_counts_when_it_changed_and_not_when_it_was_read() {
        let folder = tempfile::tempdir().expect("the temporary directory can be written");
        let file = folder.path().join("App.pm");
        fs::write(&file, "1;").expect("it can be written");
        let mut seen = Seen::new(SystemTime::now() + Duration::from_secs(1));
        assert!(!seen.is_new(&file), "it is older than the watch");
        fs::read(&file).expect("it can be read");
        assert!(!seen.is_new(&file), "it was only read");
        fs::rename(&file, folder.path().join("Old.pm")).expect("it can be renamed");
        assert!(seen.is_new(&file), "it is gone");
        fs::write(&file, "2;").expect("it can be written");
        assert!(seen.is_new(&file), "it is there again");
        assert!(!seen.is_new(&file), "it is known");
    }

    #[test]
    fn a_directory_within_another_is_watched_once() {
        let folder = tempfile::tempdir().expect("the temporary directory can be written");
        let library = folder.path().join("lib");
        fs::create_dir(&library).expect("it can be made");
        let builder = crate::Gateway::builder(folder.path().join("app.psgi"))
            .include(&library)
            .include(folder.path().join("none"))
            .watch(folder.path());
        let root = fs::canonicalize(folder.path()).expect("it exists");
        assert_eq!(roots(&builder.settings), [root]);
    }
}
