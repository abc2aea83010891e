//! The directory of the tools, and the stamps in it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Outcome;

pub(super) struct Root {
    path: PathBuf,
    /// Held while the steps run: two installations at once would destroy each other's work.
    _lock: File,
}

/// A directory below the root, filled by one step.
pub(super) struct Tool<'a> {
    pub(super) directory: &'a str,
    /// The pins that the step installs from: a stamp with other content is stale.
    pub(super) pins: &'a str,
    /// The file that must exist, beside the stamp, for the step to count as done. It may be a link
    /// to an interpreter that has since been removed.
    pub(super) program: &'a str,
}

impl Root {
    pub(super) fn open() -> Result<Self> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workspace = workspace
            .canonicalize()
            .with_context(|| format!("the workspace {} is not there", workspace.display()))?;
        let path = workspace.join("target/tools");
        fs::create_dir_all(path.join("stamps"))
            .with_context(|| format!("cannot create {}", path.display()))?;
        let lock = File::create(path.join("lock")).context("cannot create the lock file")?;
        lock.lock().context("cannot lock the lock file")?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }

    /// Runs `fill` on the tool's emptied directory, unless the stamp shows that it was done.
    pub(super) fn unless_stamped(
        &self,
        tool: &Tool<'_>,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Outcome> {
        let directory = self.join(tool.directory);
        let stamp = self.join("stamps").join(tool.directory);
        let is_stamped = fs::read_to_string(&stamp).is_ok_and(|pins| pins == tool.pins);
        if is_stamped && directory.join(tool.program).exists() {
            return Ok(Outcome::Present);
        }
        remove(&stamp, fs::remove_file)?;
        remove(&directory, fs::remove_dir_all)?;
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        fill(&directory)?;
        fs::write(&stamp, tool.pins)
            .with_context(|| format!("cannot write {}", stamp.display()))?;
        Ok(Outcome::Installed)
    }
}

/// Removes a path. Succeeds also if there is nothing to remove.
pub(super) fn remove(path: &Path, how: impl Fn(PathBuf) -> io::Result<()>) -> Result<()> {
    match how(path.to_owned()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
