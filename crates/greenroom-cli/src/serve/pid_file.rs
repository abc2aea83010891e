//! The file that tells operators' scripts the process' number.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Removed when it is dropped, unless another process has put its own number there, as one that
/// takes over does.
#[derive(Debug)]
pub(super) struct PidFile {
    path: PathBuf,
    text: String,
    file: File,
}

impl PidFile {
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("--pid {}: the file cannot be written", path.display());
        let path = std::path::absolute(path).with_context(failed)?;
        let text = format!("{}\n", std::process::id());
        let file = write(&path, &text).with_context(failed)?;
        Ok(Self { path, text, file })
    }
}

/// In one step: whoever reads it finds the old number or the new one, and no link is followed.
fn write(path: &Path, text: &str) -> io::Result<File> {
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

impl Drop for PidFile {
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|text| text != self.text) {
            return;
        }
        // Who is not root any more may not be allowed to remove it; an empty file says the same.
        let _emptied = fs::remove_file(&self.path).or_else(|_| self.file.set_len(0));
    }
}
