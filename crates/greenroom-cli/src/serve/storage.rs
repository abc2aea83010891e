//! The directory of certificates, which belongs to the user to serve as.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{Access, Dir, Mode, OFlags, access, open, openat};
use rustix::io::Errno;

use super::identity::Identity;

/// The levels of directories below that of the certificates: one for each authority, one for all
/// its certificates, and one for each of them. There is no more to give.
const LEVELS_MAX: u32 = 3;

/// Gives the directory to the user to serve as, who obtains the certificates.
///
/// That user may have been the owner before, and could have put links there: root would give away
/// what they lead to. So no link is followed, and only directories and files of one name are given.
pub(super) fn give(identity: &Identity, storage: &Path) -> anyhow::Result<()> {
    let given = directory(storage).and_then(|directory| own(identity, &directory, LEVELS_MAX));
    given.with_context(|| {
        let storage = storage.display();
        format!("{storage} cannot be given to the user and group to serve as")
    })
}

/// Fails if the directory is there, but only a link of somebody else's leads to it. To be called
/// before anything is written there.
pub(super) fn look(storage: &Path) -> anyhow::Result<()> {
    match directory(storage) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("--acme-storage {}", storage.display()))
        }
        _ => Ok(()),
    }
}

/// Opens the directory; a link to it must be root's, or this user's.
fn directory(storage: &Path) -> io::Result<File> {
    let found = storage.symlink_metadata()?;
    let trusted = [0, rustix::process::geteuid().as_raw()];
    let is_link = found.is_symlink();
    let path = if is_link && trusted.contains(&found.uid()) {
        storage.canonicalize()?
    } else {
        storage.to_owned()
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match open(path, flags, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) if is_link => Err(io::Error::other(
            "it is a link of another user's, and is not followed",
        )),
        opened => Ok(opened?.into()),
    }
}

/// Gives an open directory, and what is in it.
fn own(identity: &Identity, directory: &File, levels: u32) -> io::Result<()> {
    give_file(identity, directory)?;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let Some(file) = plain(directory, name)? else {
            tracing::warn!(
                name = %name.to_string_lossy(),
                "this is no file of certificates, but a link or the like, and keeps its owner"
            );
            continue;
        };
        if !file.metadata()?.is_dir() {
            give_file(identity, &file)?;
        } else if levels > 0 {
            own(identity, &file, levels - 1)?;
        }
    }
    Ok(())
}

/// Opens a directory, or a file that has one name; `None` for anything else.
fn plain(directory: &File, name: &CStr) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match openat(directory, name, flags | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => File::from(file),
        // A link, a socket, or gone meanwhile.
        Err(Errno::LOOP | Errno::NXIO | Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let found = file.metadata()?;
    let is_plain = found.is_dir() || found.is_file() && found.nlink() == 1;
    Ok(is_plain.then_some(file))
}

fn give_file(identity: &Identity, file: &File) -> io::Result<()> {
    if identity.has(&file.metadata()?) {
        return Ok(());
    }
    identity.own(file)
}

/// Fails unless the user of this process can write into the directory.
pub(super) fn check(storage: &Path) -> anyhow::Result<()> {
    let all = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let Err(errno) = access(storage, all) else {
        return Ok(());
    };
    let (place, advice) = match closed(storage) {
        Some(above) => (
            above,
            "that user may not pass this directory: let it (chmod o+x, or another owner)",
        ),
        None => (
            storage.to_owned(),
            "that user must be its owner, or have rights to write there",
        ),
    };
    let (storage, place) = (storage.display(), place.display());
    Err(io::Error::from(errno)).context(format!(
        "--acme-storage {storage}: the user to serve as cannot keep certificates there; {place}: \
         {advice}, or name another place"
    ))
}

/// Returns the uppermost directory above `storage` that cannot be passed.
fn closed(storage: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(storage).ok()?;
    let mut above: Vec<&Path> = whole.ancestors().skip(1).collect();
    above.reverse();
    let is_closed = |directory: &&Path| access(*directory, Access::EXEC_OK).is_err();
    above.into_iter().find(is_closed).map(Path::to_owned)
}
