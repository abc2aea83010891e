//! A disk that is full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A file system in memory, of a few megabytes; needs root. It is unmounted when this is dropped.
pub(crate) struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    pub(crate) fn mount(mebibytes: u32) -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let size = format!("size={mebibytes}m");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(directory.path());
        let status = mount.status().expect("mount can be run");
        assert!(
            status.success(),
            "a tmpfs cannot be mounted: the test needs root"
        );
        Self { directory }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Leaves no byte free.
    pub(crate) fn fill(&self) {
        let mut filler = fs::File::create(self.filler()).expect("a file can be made");
        let full = std::io::copy(&mut std::io::repeat(0), &mut filler).expect_err("the disk ends");
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "{full}");
    }

    pub(crate) fn make_room(&self) {
        fs::remove_file(self.filler()).expect("the disk was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a killed program may still be about to end.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
    }
}
