use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result};
use ignore::WalkBuilder;

/// The repository's text files, by their paths from its root, and the paths of the others.
pub(super) struct Tree {
    texts: BTreeMap<PathBuf, String>,
    others: BTreeSet<PathBuf>,
}

impl Tree {
    /// Reads every file below `root` that git does not ignore and that is UTF-8.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        let (mut texts, mut others) = (BTreeMap::new(), BTreeSet::new());
        for entry in walk {
            let entry = entry.context("cannot walk the repository")?;
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let path = entry.path();
            let text =
                read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(root)?.to_owned();
            match text {
                Some(text) => drop(texts.insert(path, text)),
                None => drop(others.insert(path)),
            }
        }
        Ok(Self { texts, others })
    }

    #[cfg(test)]
    pub(super) fn of<const N: usize>(texts: [(&str, &str); N]) -> Self {
        let owned = texts.map(|(path, text)| (PathBuf::from(path), text.to_owned()));
        Self {
            texts: owned.into(),
            others: BTreeSet::new(),
        }
    }

    pub(super) fn text(&self, path: &Path) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, &str)> {
        let texts = self.texts.iter();
        texts.map(|(path, text)| (path.as_path(), text.as_str()))
    }

    pub(super) fn files_with<'a>(
        &'a self,
        extension: &'a str,
    ) -> impl Iterator<Item = (&'a Path, &'a str)> {
        self.files()
            .filter(move |(path, _)| path.extension().is_some_and(|found| found == extension))
    }

    /// Returns the paths of files that are not text.
    pub(super) fn others(&self) -> impl Iterator<Item = &Path> {
        self.others.iter().map(PathBuf::as_path)
    }

    /// True if there is a file at `path`, or a folder that holds one.
    pub(super) fn holds(&self, path: &Path) -> bool {
        let mut files = self.texts.keys().chain(&self.others);
        files.any(|file| file.starts_with(path))
    }
}

/// `None` for a file that is not text, or that was removed since it was listed.
fn read_text(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
