//! The file that tells operators' scripts the process' number.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use greenroom::Upgrades;

/// Removed when it is dropped, unless another process has put its own number there, as one that
/// takes over does.
#[derive(Debug)]
pub(super) struct PidFile(Arc<Mutex<Option<Written>>>);

#[derive(Debug)]
struct Written {
    path: PathBuf,
    text: String,
    file: File,
}

impl PidFile {
    /// Writes the file at once, or when the version before steps back: until then it is that one's.
    pub(super) fn create(path: &Path, upgrades: &Upgrades) -> anyhow::Result<Self> {
        let failed = || format!("--pid {}: the file cannot be written", path.display());
        let path = std::path::absolute(path).with_context(failed)?;
        let written = Arc::new(Mutex::new(None));
        let place = Arc::clone(&written);
        let (said, shared) = (failed(), upgrades.clone());
        let passed_on = upgrades.take_file(&path.to_string_lossy());
        let step = move || {
            let ours = write(&path, passed_on, &shared).map_err(|error| {
                let kind = error.kind();
                io::Error::new(kind, format!("{said}: {error}"))
            })?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(ours);
            Ok(())
        };
        upgrades.before_serving(step)?;
        Ok(Self(written))
    }
}

fn write(path: &Path, passed_on: Option<File>, upgrades: &Upgrades) -> io::Result<Written> {
    let text = format!("{}\n", std::process::id());
    let file = match (replace(path, &text), passed_on) {
        (Ok(file), _) => file,
        // Who is not root any more may not be allowed to replace it.
        (Err(_), Some(file)) => overwrite(file, &text)?,
        (Err(error), None) => return Err(error),
    };
    upgrades.hand_over_file(&path.to_string_lossy(), &file)?;
    Ok(Written {
        path: path.to_owned(),
        text,
        file,
    })
}

/// In one step: whoever reads it finds the old number or the new one, and no link is followed.
fn replace(path: &Path, text: &str) -> io::Result<File> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    // One that an earlier process of this number has left behind.
    let _gone = fs::remove_file(&temporary);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)?;
    let written = file.write_all(text.as_bytes());
    written
        .and_then(|()| fs::rename(&temporary, path))
        .inspect_err(|_| {
            let _gone = fs::remove_file(&temporary);
        })?;
    Ok(file)
}

/// Writes into the file that the version before has open. Empty lines cover what is left of a
/// longer number, until the file is cut.
fn overwrite(file: File, text: &str) -> io::Result<File> {
    let before = file.metadata()?.len();
    let mut whole = text.as_bytes().to_vec();
    let length = usize::try_from(before).map_or(whole.len(), |before| before.max(whole.len()));
    whole.resize(length.min(text.len() + LONGEST), b'\n');
    file.write_all_at(&whole, 0)?;
    file.set_len(text.len() as u64)?;
    Ok(file)
}

/// The longest process number with its line's end.
const LONGEST: usize = 11;

impl Drop for PidFile {
    fn drop(&mut self) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Written { path, text, file }) = written.take() else {
            return;
        };
        if fs::read_to_string(&path).is_ok_and(|found| found != text) {
            return;
        }
        // Who is not root any more may not be allowed to remove it; an empty file says the same.
        let _emptied = fs::remove_file(&path).or_else(|_| file.set_len(0));
    }
}
