//! Files that are whole, or are not there, also after the power failed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::StoreError;

/// The longest file that is read, in bytes: 1 MiB. A longer one counts as damaged.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

const DIRECTORY_MODE: u32 = 0o700;
/// The mode of directories above that of the store, which others may have to pass.
const PARENT_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o600;

/// Makes the directory of the store for this user alone, and those above it that are missing as any
/// other directory; those that exist stay as they are.
pub(super) fn create_root(path: &Path) -> Result<(), StoreError> {
    if let Some(parent) = path.parent().filter(|parent| !parent.is_dir())
        && !parent.as_os_str().is_empty()
    {
        create(parent, PARENT_MODE).map_err(at(path))?;
    }
    create_directory(path)
}

/// Makes a directory, and those above it, for this user alone; those that exist stay as they are.
pub(super) fn create_directory(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    create(path, DIRECTORY_MODE).map_err(at(path))
}

fn create(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .and_then(|()| sync_parent(path))
}

/// Reads a file. Returns `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let file = match open_plainly(OpenOptions::new().read(true), path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(path)(error)),
    };
    let mut bytes = Vec::new();
    let mut limited = file.take(FILE_BYTES_MAX + 1);
    let length = limited.read_to_end(&mut bytes).map_err(at(path))?;
    if length as u64 > FILE_BYTES_MAX {
        let reason = format!("longer than {FILE_BYTES_MAX} bytes");
        return Err(StoreError::damaged(path.to_owned(), &reason));
    }
    Ok(Some(bytes))
}

/// Writes a file in the place of the one that may be there.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    replace(path, &temporary, bytes).map_err(at(path))
}

fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    // One that was left behind may be another's, or have another mode.
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    sync_parent(path)
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

/// Renames a file. Returns its new path, or `None` if there was none.
pub(super) fn rename(from: &Path, to: &Path) -> Result<Option<PathBuf>, StoreError> {
    match fs::rename(from, to) {
        Ok(()) => {
            sync_parent(to).map_err(at(to))?;
            Ok(Some(to.to_owned()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(from)(error)),
    }
}

/// Opens the file of a lock, whatever its content is.
pub(super) fn open_lock(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    open_plainly(options.mode(FILE_MODE), path).map_err(at(path))
}

/// Opens a file that is nothing else. The process may have more rights than the owner of the
/// directory, who could have put something there that leads elsewhere, or never opens.
fn open_plainly(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    const LINK: &str = "it is a link, and none is followed here: remove it";
    const OTHER: &str = "it is no regular file: remove it";
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => io::Error::new(ErrorKind::InvalidInput, LINK),
            // A FIFO without a reader, or a socket.
            Some(Errno::NXIO) => io::Error::new(ErrorKind::InvalidInput, OTHER),
            _ => error,
        })?;
    let found = opened.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, OTHER));
    }
    if found.nlink() > 1 {
        return Err(io::Error::new(ErrorKind::InvalidInput, LINK));
    }
    Ok(opened)
}

/// Replaces the content of a file that is open.
pub(super) fn overwrite(file: &File, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    // At the beginning, wherever others have left the position that they share.
    file.set_len(0)
        .and_then(|()| file.write_all_at(bytes, 0))
        .map_err(at(path))
}

/// A file's name is durable once its directory was written.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    |source| StoreError::Io { path, source }
}
