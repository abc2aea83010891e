//! Files of a directory, and nothing outside of it.

use std::fs::{self, Metadata};
use std::future::{Ready, ready};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::Either;
use parking_lot::Mutex;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, accessat, openat2};
use rustix::io::Errno;
use tower_http::services::fs::Backend;

use super::opened::Opened;

/// A directory below which files are opened. The kernel resolves each path within it
/// (`RESOLVE_BENEATH`, openat2(2), Linux 5.6), so that neither `..` nor a symbolic link leads out,
/// also while somebody exchanges files for links. The directory's own path is resolved anew for
/// each request, which has a clone: it may be a link to a release.
#[derive(Debug)]
pub(super) struct Beneath {
    root: Arc<Path>,
    /// The file that the request's first look found, which is often the one to be opened.
    found: Mutex<Option<(PathBuf, Opened)>>,
}

impl Clone for Beneath {
    fn clone(&self) -> Self {
        Self {
            root: Arc::clone(&self.root),
            found: Mutex::default(),
        }
    }
}

impl Beneath {
    /// Opens a directory once, to see that it can be read.
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        let entered = enter(root, ResolveFlags::empty())?;
        let itself = OFlags::PATH | OFlags::CLOEXEC;
        openat2(&entered, ".", itself, Mode::empty(), ResolveFlags::BENEATH)?;
        Ok(Self {
            root: root.into(),
            found: Mutex::default(),
        })
    }

    /// Opens a file that may be read if the kernel finds it without waiting for a disk, and keeps
    /// it for [`open`](Backend::open).
    fn find(&self, path: &Path) -> Option<Metadata> {
        let file = open(&self.root, path, TO_READ, ResolveFlags::CACHED).ok()?;
        let opened = opened(file).ok()?;
        let metadata = opened.metadata().clone();
        *self.found.lock() = Some((path.to_owned(), opened));
        Some(metadata)
    }

    /// Opens what the kernel finds without waiting for a disk, and lets a thread open the rest.
    fn start<T: Send + 'static>(
        &self,
        path: PathBuf,
        flags: OFlags,
        finish: impl FnOnce(fs::File) -> io::Result<T> + Send + 'static,
    ) -> Opening<T> {
        let cached = open(&self.root, &path, flags, ResolveFlags::CACHED);
        if !cached.as_ref().is_err_and(is_about_the_cache) {
            return Either::Left(ready(cached.and_then(finish)));
        }
        let root = Arc::clone(&self.root);
        Either::Right(Box::pin(async move {
            let opened = move || finish(open_in_the_end(&root, &path, flags)?);
            tokio::task::spawn_blocking(opened).await?
        }))
    }
}

/// A FIFO must not hold up the thread that opens it.
const TO_READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// The most tries to open a file while others rename directories.
const TRIES_MAX: usize = 32;

type Waiting<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;
type Opening<T> = Either<Ready<io::Result<T>>, Waiting<T>>;

fn enter(root: &Path, cached: ResolveFlags) -> io::Result<OwnedFd> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat2(CWD, root, directory, Mode::empty(), cached)?)
}

fn open(root: &Path, path: &Path, flags: OFlags, cached: ResolveFlags) -> io::Result<fs::File> {
    let root = enter(root, cached)?;
    let flags = flags | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | cached;
    match openat2(&root, path, flags, Mode::empty(), beneath) {
        Ok(file) => Ok(fs::File::from(file)),
        // The path leads out, or in circles; or it is none that may be read, and there may be
        // another variant of the file; or a socket, or a device that is none.
        Err(
            Errno::XDEV
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::ACCESS
            | Errno::NXIO
            | Errno::NODEV,
        ) => Err(not_found()),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a file, again where the kernel cannot tell whether a `..` leads out because something is
/// renamed or mounted meanwhile, as openat2(2) says.
fn open_in_the_end(root: &Path, path: &Path, flags: OFlags) -> io::Result<fs::File> {
    for _ in 1..TRIES_MAX {
        match open(root, path, flags, ResolveFlags::empty()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            opened => return opened,
        }
    }
    open(root, path, flags, ResolveFlags::empty())
}

/// Returns true if the kernel would have to wait, or knows no `RESOLVE_CACHED` (before Linux 5.12).
fn is_about_the_cache(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::AGAIN | Errno::INVAL))
}

/// Returns a file that was opened to be read; sockets, devices and the like are not served.
fn opened(file: fs::File) -> io::Result<Opened> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_found());
    }
    Ok(Opened::new(file, metadata))
}

/// Returns false if a file that was found may not be read: HEAD tells what GET would.
fn is_readable(file: &fs::File) -> bool {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS) != Err(Errno::ACCESS)
}

fn not_found() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl Backend for Beneath {
    type File = Opened;
    type Metadata = Metadata;
    type OpenFuture = Opening<Opened>;
    type MetadataFuture = Opening<Metadata>;

    fn open(&self, path: PathBuf) -> Opening<Opened> {
        let found = self.found.lock().take_if(|(found, _)| *found == path);
        if let Some((_, file)) = found {
            return Either::Left(ready(Ok(file)));
        }
        self.start(path, TO_READ, opened)
    }

    fn metadata(&self, path: PathBuf) -> Opening<Metadata> {
        if let Some(metadata) = self.find(&path) {
            return Either::Left(ready(Ok(metadata)));
        }
        self.start(path, OFlags::PATH, |file| {
            let metadata = file.metadata()?;
            let is_served = metadata.is_dir() || metadata.is_file() && is_readable(&file);
            if is_served {
                Ok(metadata)
            } else {
                Err(not_found())
            }
        })
    }
}
