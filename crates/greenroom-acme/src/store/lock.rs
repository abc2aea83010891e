//! The lock of a directory, which one process has at a time.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::{Store, StoreError, file};
use crate::account::in_background;

/// The interval in which a process that waits for the lock looks whether it is free: 1 s.
pub const LOCK_LOOK: Duration = Duration::from_secs(1);

/// The time for which waiting for the lock is nothing special: 10 min. Beyond it the log has an
/// error, and the wait goes on.
pub const LOCK_WAIT_MAX: Duration = Duration::from_mins(10);

/// The ways in which a lock may be had.
#[derive(Debug, Default)]
pub(crate) struct Locking {
    /// The lock's file, as the process before has it open.
    pub(crate) passed: Option<File>,
    /// The lock may be had later than the directory is read.
    pub(crate) may_wait: bool,
}

/// The lock's file. Whoever holds the lock has left its number in it.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// This process holds it alone, and has said so.
    is_claimed: AtomicBool,
}

impl Lock {
    pub(super) fn open(root: &Path, locking: Locking) -> Result<Self, StoreError> {
        let path = root.join("lock");
        let found = file::open_lock(&path)?;
        // One of another directory, or of a file that was removed since, locks nothing here.
        let passed = locking.passed.filter(|passed| is_same(passed, &found));
        let is_passed = passed.is_some();
        let lock = Self {
            file: passed.unwrap_or(found),
            path,
            is_claimed: AtomicBool::new(false),
        };
        // The process before uses one that was passed on, until this one claims it.
        let locked = if is_passed { lock.lock() } else { lock.claim() };
        match locked {
            Err(StoreError::InUse { .. }) if locking.may_wait => Ok(lock),
            locked => locked.map(|()| lock),
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn is_claimed(&self) -> bool {
        self.is_claimed.load(Ordering::Relaxed)
    }

    /// Locks the directory for this process alone, and leaves its number in the file.
    pub(super) fn claim(&self) -> Result<(), StoreError> {
        self.lock()?;
        let number = std::process::id().to_string();
        file::overwrite(&self.file, &self.path, number.as_bytes())?;
        self.is_claimed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Locks the directory against other processes than those that have this very file open.
    fn lock(&self) -> Result<(), StoreError> {
        self.file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => StoreError::InUse {
                directory: self.path.parent().unwrap_or(Path::new("")).to_owned(),
                holder: self.holder(),
            },
            TryLockError::Error(source) => StoreError::Io {
                path: self.path.clone(),
                source,
            },
        })
    }

    fn holder(&self) -> Option<u32> {
        let text = file::read(&self.path).ok()??;
        std::str::from_utf8(&text).ok()?.trim().parse().ok()
    }
}

/// Claims the lock of a store, and waits while another process has it. Returns `true` if another
/// one has had it since the store was opened: what was read then may be old.
pub(crate) async fn claim(store: &Arc<Store>) -> bool {
    if store.lock.is_claimed() {
        return false;
    }
    let (begin, mut said) = (Instant::now(), Said::Nothing);
    loop {
        let shared = Arc::clone(store);
        let Err(error) = in_background(move || shared.lock.claim()).await else {
            break;
        };
        if said == Said::Nothing {
            warn!(%error, "no certificate is obtained until the directory is free");
            said = Said::Waits;
        } else if said == Said::Waits && begin.elapsed() > LOCK_WAIT_MAX {
            error!(%error, "no certificate is obtained still, nor renewed");
            said = Said::All;
        }
        tokio::time::sleep(LOCK_LOOK).await;
    }
    if said != Said::Nothing {
        info!("the directory of certificates is free, and this process' from now on");
    }
    true
}

/// The lines that the log has of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Waits,
    All,
}

fn is_same(one: &File, other: &File) -> bool {
    let identity = |file: &File| file.metadata().map(|file| (file.dev(), file.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}
