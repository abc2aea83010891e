//! The Perl side, embedded in this program, and the private directory to which it is written.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::StartError;

/// The bytes that the path of a socket may have (`sun_path` of unix(7), less its NUL).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The bytes of the longest name of a worker's socket, with the slash before it.
const SOCKET_NAME_BYTES_MAX: usize = "/worker-4294967295.sock".len();

/// The directory's permissions: for its owner alone.
const DIRECTORY_MODE: u32 = 0o700;

macro_rules! perl_files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../perl/lib/", $path)))),*]
    };
}

/// The contents of each file with its path below `lib`.
const FILES: &[(&str, &str)] = perl_files![
    "Greenroom/Application.pm",
    "Greenroom/Body.pm",
    "Greenroom/Frame.pm",
    "Greenroom/Input.pm",
    "Greenroom/Link.pm",
    "Greenroom/Loop.pm",
    "Greenroom/Loop/AnyEvent.pm",
    "Greenroom/Loop/EV.pm",
    "Greenroom/Loop/IOAsync.pm",
    "Greenroom/Loop/Mojo.pm",
    "Greenroom/Loop/Select.pm",
    "Greenroom/Loop/Watchers.pm",
    "Greenroom/Request.pm",
    "Greenroom/Worker.pm",
    "Greenroom/Writer.pm",
    "Greenroom/Zygote.pm",
];

/// Returns the path of the socket on which a worker listens.
pub(crate) fn worker_socket(directory: &Path, key: u32) -> PathBuf {
    directory.join(format!("worker-{key}.sock"))
}

/// Returns the directory of our Perl modules.
pub(crate) fn library(directory: &Path) -> PathBuf {
    directory.join("lib")
}

/// Creates a directory that only this user may enter, with the Perl files. It is removed when the
/// value is dropped.
pub(crate) fn private_directory() -> Result<TempDir, StartError> {
    let parent = parent(std::env::var_os("RUNTIME_DIRECTORY").as_deref());
    let failed = |source| StartError::Directory {
        path: parent.clone(),
        source,
    };
    let directory = tempfile::Builder::new()
        .prefix("greenroom-")
        .permissions(Permissions::from_mode(DIRECTORY_MODE))
        .tempdir_in(&parent)
        .map_err(failed)?;
    check_length(directory.path())?;
    write_files(&library(directory.path())).map_err(failed)?;
    Ok(directory)
}

/// Rejects a directory in which a worker's socket could not be bound.
pub(crate) fn check_length(directory: &Path) -> Result<(), StartError> {
    let bytes = directory.as_os_str().as_bytes().len();
    let allowed = SOCKET_PATH_BYTES_MAX - SOCKET_NAME_BYTES_MAX;
    if bytes <= allowed {
        return Ok(());
    }
    Err(StartError::DirectoryLength {
        path: directory.to_path_buf(),
        bytes,
        allowed,
    })
}

/// Returns the service manager's directory for this service (systemd's `RuntimeDirectory=`), else
/// the one for temporary files. A user's own runtime directory would be removed when the user logs
/// out.
fn parent(runtime: Option<&OsStr>) -> PathBuf {
    let runtime = runtime.map(PathBuf::from);
    runtime
        .filter(|path| path.is_absolute() && path.is_dir())
        .unwrap_or_else(std::env::temp_dir)
}

fn write_files(library: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let file = library.join(path);
        if let Some(folder) = file.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(DIRECTORY_MODE)
                .create(folder)?;
        }
        File::create_new(file)?.write_all(text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn below(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
        for entry in folder.read_dir().expect("the folder is there") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                below(&path, root, found);
            } else {
                let path = path.strip_prefix(root).expect("it is below its root");
                found.insert(path.display().to_string());
            }
        }
    }

    #[test]
    fn every_perl_file_that_workers_need_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("perl/lib");
        let mut found = BTreeSet::new();
        below(&root.join("Greenroom"), &root, &mut found);
        let carried: BTreeSet<_> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(carried, found);
    }

    #[test]
    fn the_directory_is_private_and_goes_with_its_value() {
        let directory = private_directory().expect("the temporary directory can be written");
        let path = directory.path().to_owned();
        let mode = path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let module = library(&path).join("Greenroom/Zygote.pm");
        assert!(module.is_file());
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn a_path_too_long_for_sockets_is_refused_with_the_limit() {
        let longest = PathBuf::from(format!("/{}", "x".repeat(83)));
        assert!(check_length(&longest).is_ok());
        let error = check_length(&longest.join("y")).expect_err("it is too long");
        assert!(
            error.to_string().contains("has 86 bytes; 84 are allowed"),
            "{error}"
        );
    }

    #[test]
    fn a_runtime_directory_that_does_not_exist_is_not_used() {
        assert_eq!(
            parent(Some(OsStr::new("/nowhere/at/all"))),
            std::env::temp_dir()
        );
        assert_eq!(parent(Some(OsStr::new("/proc"))), PathBuf::from("/proc"));
    }
}
