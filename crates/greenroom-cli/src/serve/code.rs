//! The file that holds what -e says.

use std::path::PathBuf;

use anyhow::Context;
use tempfile::TempDir;

/// Removed when it is dropped.
#[derive(Debug)]
pub(super) struct CodeFile {
    directory: TempDir,
}

impl CodeFile {
    pub(super) fn write(code: &str) -> anyhow::Result<Self> {
        let failed = "-e: the code cannot be written to a file in $TMPDIR";
        let directory = TempDir::with_prefix("greenroom-").context(failed)?;
        let file = Self { directory };
        std::fs::write(file.path(), code).context(failed)?;
        Ok(file)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("e.psgi")
    }
}
