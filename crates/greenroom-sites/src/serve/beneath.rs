//! Files of a directory, and nothing outside of it.

use std::fs::{self, Metadata};
use std::future::{Ready, ready};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs::{Backend, File};

/// A directory below which files are opened. The kernel resolves each path within it
/// (`RESOLVE_BENEATH`, openat2(2), Linux 5.6), so that neither `..` nor a symbolic link leads out,
/// also while somebody exchanges files for links. The directory's own path is resolved anew each
/// time: it may be a link to a release.
#[derive(Clone, Debug)]
pub(super) struct Beneath {
    root: Arc<Path>,
}

impl Beneath {
    /// Opens a directory once, to see that it can be read.
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        open(root, Path::new("."), OFlags::PATH)?;
        Ok(Self { root: root.into() })
    }

    fn start<T: Send + 'static>(
        &self,
        path: PathBuf,
        flags: OFlags,
        finish: impl FnOnce(fs::File) -> io::Result<T> + Send + 'static,
    ) -> Opening<T> {
        let root = Arc::clone(&self.root);
        Box::pin(async move {
            let opened = move || finish(open(&root, &path, flags)?);
            tokio::task::spawn_blocking(opened).await?
        })
    }
}

type Opening<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

fn open(root: &Path, path: &Path, flags: OFlags) -> io::Result<fs::File> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root: OwnedFd = openat(CWD, root, directory, Mode::empty())?;
    let flags = flags | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(&root, path, flags, Mode::empty(), beneath) {
        Ok(file) => Ok(fs::File::from(file)),
        // The path leads out, or in circles.
        Err(Errno::XDEV | Errno::LOOP | Errno::NAMETOOLONG) => Err(not_found()),
        Err(errno) => Err(errno.into()),
    }
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
        // A FIFO must not hold up the thread that opens it.
        self.start(path, OFlags::RDONLY | OFlags::NONBLOCK, |file| {
            let metadata = file.metadata()?;
            // Sockets, devices and the like are no files to be served.
            if !metadata.is_file() {
                return Err(not_found());
            }
            let file = tokio::fs::File::from_std(file);
            Ok(Opened { file, metadata })
        })
    }

    fn metadata(&self, path: PathBuf) -> Opening<Metadata> {
        self.start(path, OFlags::PATH, |file| {
            let metadata = file.metadata()?;
            let is_served = metadata.is_file() || metadata.is_dir();
            if is_served {
                Ok(metadata)
            } else {
                Err(not_found())
            }
        })
    }
}

/// A file that is open.
#[derive(Debug)]
pub(super) struct Opened {
    file: tokio::fs::File,
    metadata: Metadata,
}

impl File for Opened {
    type Metadata = Metadata;
    type MetadataFuture<'a> = Ready<io::Result<Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(self.metadata.clone()))
    }
}

impl AsyncRead for Opened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.file).poll_read(cx, buffer)
    }
}

impl AsyncSeek for Opened {
    fn start_seek(mut self: Pin<&mut Self>, position: io::SeekFrom) -> io::Result<()> {
        Pin::new(&mut self.file).start_seek(position)
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.file).poll_complete(cx)
    }
}
