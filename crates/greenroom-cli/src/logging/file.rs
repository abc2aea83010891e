//! Log files.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use rustix::fs::OFlags;
use signal_hook::consts::SIGUSR1;
use signal_hook::flag;

use super::journal::Journal;
use crate::args::{LogArgs, LogFormat};
use crate::serve::Identity;

/// The files of --access-log and --error-log, and the journal.
pub(crate) struct LogFiles {
    pub(super) journal: Option<Journal>,
    pub(super) access: Option<LogFile>,
    pub(super) error: Option<LogFile>,
}

impl LogFiles {
    /// Opens the files, which become the owner's, and reopens them after each SIGUSR1. The signal
    /// ends no process even if there are no files.
    pub(crate) fn open(args: &LogArgs, owner: Option<&Identity>) -> anyhow::Result<Self> {
        reopening().context("SIGUSR1 cannot be caught")?;
        let open = |flag: &str, path: Option<&PathBuf>| {
            let file = path.map(|path| LogFile::open(path, owner));
            file.transpose()
                .with_context(|| format!("{flag}: the file cannot be written"))
        };
        let is_for_journal = args.log_format == LogFormat::Journald && args.error_log.is_none();
        Ok(Self {
            journal: is_for_journal.then(Journal::open).transpose()?,
            access: open("--access-log", args.access_log.as_ref())?,
            error: open("--error-log", args.error_log.as_ref())?,
        })
    }
}

pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    /// `true` after SIGUSR1.
    is_to_reopen: Arc<AtomicBool>,
}

impl LogFile {
    fn open(path: &Path, owner: Option<&Identity>) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        let file = match owner {
            Some(owner) => open_for(owner, &path),
            None => appending().open(&path),
        };
        Ok(Self {
            file: file.with_context(|| path.display().to_string())?,
            path,
            is_to_reopen: reopening()?,
        })
    }

    fn reopen(&mut self) {
        match appending().open(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => tracing::error!(
                file = %self.path.display(), %error,
                "a log file cannot be reopened; its lines go to the old one"
            ),
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if self.is_to_reopen.swap(false, Ordering::Relaxed) {
            self.reopen();
        }
        self.file.write(lines)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn appending() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options
}

/// Opens a file for its owner, who may own the directory and could have put a link there: writing
/// to its target would be root's right, not the owner's. So no link is followed, and only a new
/// file becomes the owner's.
fn open_for(owner: &Identity, path: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.append(true).custom_flags(no_link);
    match options.clone().create_new(true).open(path) {
        Ok(file) => owner.own(&file).map(|()| file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path),
        Err(error) => Err(error),
    }
}

fn reopening() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    flag::register(SIGUSR1, Arc::clone(&asked))?;
    Ok(asked)
}
