//! Cleanup of files that a killed process has left behind.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use parking_lot::Mutex;
use tempfile::TempPath;

/// The prefix of the names of uploads: in the system's temporary directory they lie beside others'
/// files.
pub(super) const UPLOAD: &str = "social-upload-";

/// The files of uploads that this process has under way.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay(Arc<Mutex<Vec<Weak<TempPath>>>>);

impl UnderWay {
    /// Adds a file, which is one of them until the last clone is dropped, as it is deleted.
    pub(super) fn add(&self, path: TempPath) -> Arc<TempPath> {
        let path = Arc::new(path);
        let mut all = self.0.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&path));
        path
    }

    /// Makes them as young as if they were written now. An upload may take many hours, in which a
    /// file that is complete waits for those behind it; neither this process nor another one with
    /// the same directory may take it for a leftover.
    pub(super) fn refresh(&self) {
        let all: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        for path in all {
            let file = fs::File::options().write(true).open(&*path);
            // It is not there any more if it was stored meanwhile.
            let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
        }
    }
}

/// Deletes the files of a directory that have this prefix and were last written before `until`, and
/// returns their number. Another process may delete them at the same time.
pub(super) fn sweep(directory: &Path, prefix: &str, until: SystemTime) -> io::Result<usize> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut swept = 0;
    for entry in entries {
        let entry = entry?;
        let is_ours = entry.file_name().to_string_lossy().starts_with(prefix);
        if is_ours && is_old(&entry, until) && fs::remove_file(entry.path()).is_ok() {
            swept += 1;
        }
    }
    Ok(swept)
}

/// Returns `true` if the file was last written before `until`; `false` if it is gone.
fn is_old(entry: &fs::DirEntry, until: SystemTime) -> bool {
    let metadata = entry.metadata();
    let written = metadata.and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| written < until)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_old_and_of_this_name_is_deleted() {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let hour = Duration::from_hours(1);
        let make = |name: &str, age: Duration| {
            let file = fs::File::create(directory.path().join(name)).expect("a file");
            let written = SystemTime::now() - age;
            file.set_modified(written).expect("its time can be set");
        };
        make("social-upload-old", 2 * hour);
        make("social-upload-new", Duration::ZERO);
        make("other", 2 * hour);
        let until = SystemTime::now() - hour;
        let swept = sweep(directory.path(), UPLOAD, until).expect("it can be read");
        assert_eq!(swept, 1);
        let left = |name| directory.path().join(name).exists();
        assert!(left("social-upload-new") && left("other"));
        let nowhere = directory.path().join("nowhere");
        assert_eq!(sweep(&nowhere, UPLOAD, until).expect("there is nothing"), 0);
    }
}
