//! The storage of pictures' files: a directory that replicas share, or a bucket.

mod bucket;
mod incoming;
mod leftovers;
mod sweeper;

pub(crate) use incoming::Incoming;
pub(crate) use sweeper::Sweeper;

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::iter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use tempfile::{NamedTempFile, TempPath};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use self::incoming::Writer;
use self::leftovers::UnderWay;
use crate::Failure;
use crate::config::FilesSettings;
use crate::images::{Processed, io_failure};
use crate::model::Id;

/// The subdirectory of uploads.
const INCOMING: &str = "incoming";
/// The originals that are stored at a time: those for a bucket are in memory meanwhile.
const STORING_MAX: usize = 4;
/// The longest that an original waits for a permit.
const STORING_WAIT_MAX: Duration = Duration::from_secs(20);

/// The storage of files; cheap to clone.
#[derive(Clone, Debug)]
pub struct Files {
    objects: Arc<dyn ObjectStore>,
    /// The directory, if files are kept in one.
    directory: Option<Arc<Path>>,
    /// The directory of uploads that are not yet known to be pictures.
    incoming: Arc<Path>,
    under_way: UnderWay,
    storing: Arc<Semaphore>,
    writer: Writer,
}

/// The size of a picture's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Size {
    /// At most 200 x 200 pixels, JPEG.
    Small,
    /// At most 800 x 800 pixels, JPEG.
    Medium,
    /// At most 2048 x 2048 pixels, JPEG.
    Large,
    /// The uploaded file, with all that a camera writes into it: for its owner only.
    Original,
}

impl Size {
    /// All sizes.
    pub const ALL: [Self; 4] = [Self::Small, Self::Medium, Self::Large, Self::Original];

    /// Returns the name that addresses use, such as `small`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
            Self::Original => "original",
        }
    }
}

/// The content of a file.
pub struct Content {
    /// The length in bytes.
    pub length: u64,
    /// The bytes.
    pub stream: BoxStream<'static, object_store::Result<Bytes>>,
}

/// The original of a picture, as a file of this machine.
#[derive(Debug)]
pub enum Original {
    /// The file in the directory that is shared.
    InPlace(PathBuf),
    /// A copy, which is deleted when this is dropped.
    Copy(Arc<TempPath>),
}

impl Original {
    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::InPlace(path) => path,
            Self::Copy(path) => path,
        }
    }
}

impl Files {
    /// Opens a directory, which is created if need be, or a bucket.
    ///
    /// # Errors
    /// Fails if the directory cannot be created or written, or the bucket's settings are missing.
    pub fn open(settings: &FilesSettings) -> anyhow::Result<Self> {
        let (objects, incoming) = match settings {
            FilesSettings::Directory(path) => open_directory(path)?,
            FilesSettings::S3(url) => (bucket::open(url)?, std::env::temp_dir()),
        };
        let directory = match settings {
            FilesSettings::Directory(path) => Some(path.as_path().into()),
            FilesSettings::S3(_) => None,
        };
        Ok(Self {
            objects,
            directory,
            incoming: incoming.into(),
            under_way: UnderWay::default(),
            storing: Arc::new(Semaphore::new(STORING_MAX)),
            writer: Writer::start().context("no thread can be started to write uploads")?,
        })
    }

    /// Creates an empty file for an upload; it is deleted when it is dropped.
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub fn spool(&self) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(leftovers::UPLOAD);
        if self.directory.is_some() {
            // It becomes a file of the storage, which is as readable as the umask says.
            builder.permissions(Permissions::from_mode(0o666));
        }
        builder.tempfile_in(&self.incoming)
    }

    /// Like [`spool`](Self::spool), to be written as the bytes arrive.
    pub(crate) async fn receive(&self) -> io::Result<Incoming> {
        let files = self.clone();
        let file = spawn_blocking(move || files.spool()).await;
        let file = file.map_err(io::Error::other)??;
        Ok(Incoming::new(file, &self.under_way, &self.writer))
    }

    /// Deletes the files of uploads that were last written before `until`, and returns their
    /// number: a killed process has left them behind. Those that this process has under way count
    /// as written now, for others too.
    ///
    /// # Errors
    /// Fails if their directory cannot be read.
    pub async fn sweep_uploads(&self, until: SystemTime) -> io::Result<usize> {
        let (incoming, under_way) = (Arc::clone(&self.incoming), self.under_way.clone());
        let swept = spawn_blocking(move || {
            under_way.refresh();
            leftovers::sweep(&incoming, leftovers::UPLOAD, until)
        });
        swept.await.map_err(io::Error::other)?
    }

    /// Like [`sweep_uploads`](Self::sweep_uploads), with the outcome in the log.
    pub(crate) async fn sweep_unfinished(&self, until: SystemTime) {
        match self.sweep_uploads(until).await {
            Ok(0) => {}
            Ok(swept) => tracing::info!(swept, "files of unfinished uploads were deleted"),
            Err(error) => {
                tracing::warn!(%error, "files of unfinished uploads cannot be deleted; \
                    it is tried again");
            }
        }
    }

    /// Deletes all files of a picture that has no record, partly written ones included.
    ///
    /// # Errors
    /// Fails if a file cannot be deleted; others may be deleted all the same.
    pub async fn sweep_picture(&self, picture: Id) -> anyhow::Result<()> {
        self.remove(picture).await?;
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let id = picture.to_string();
        let directory = directory.join(subdirectory(&id));
        let now = SystemTime::now();
        let swept = spawn_blocking(move || leftovers::sweep(&directory, &id, now)).await?;
        swept.context("what is left of a picture's files cannot be deleted")?;
        Ok(())
    }

    /// Stores a picture's files, whose original is one of [`spool`](Self::spool); they are durable
    /// when this returns.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if they cannot be stored; some of them may be there then.
    pub async fn store(
        &self,
        picture: Id,
        original: &Path,
        processed: &Processed,
    ) -> Result<(), Failure> {
        self.store_original(picture, original).await?;
        self.store_smaller(picture, processed).await
    }

    /// Stores the file of a picture as it came, which is one of [`spool`](Self::spool); it is
    /// durable when this returns. A directory takes the file itself; for a bucket, or if uploads
    /// are on another file system, it is copied.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if it cannot be stored.
    pub async fn store_original(&self, picture: Id, original: &Path) -> Result<(), Failure> {
        let permit = tokio::time::timeout(STORING_WAIT_MAX, self.storing.acquire()).await;
        let permit = permit.map_err(|_| io_failure(io::ErrorKind::TimedOut.into()))?;
        let _permit = permit.map_err(Failure::internal)?;
        if self.directory.is_some() {
            match self.move_original(picture, original).await {
                Err(error) if crosses_devices(&error) => {}
                moved => return moved.map_err(unavailable),
            }
        }
        let content = tokio::fs::read(original).await.map_err(io_failure)?;
        self.put(picture, Size::Original, content.into()).await
    }

    async fn move_original(&self, picture: Id, original: &Path) -> object_store::Result<()> {
        let name = original.file_name().and_then(OsStr::to_str);
        let name = name.ok_or_else(|| local(io::ErrorKind::InvalidFilename.into()))?;
        let from = ObjectPath::from_iter([INCOMING, name]);
        let original = original.to_owned();
        let synced = spawn_blocking(move || File::open(original)?.sync_all()).await?;
        synced.map_err(local)?;
        let to = path(picture, Size::Original);
        self.objects.rename(&from, &to).await
    }

    /// Stores the smaller sizes of a picture; they are durable when this returns.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if they cannot be stored; some of them may be there then.
    pub async fn store_smaller(&self, picture: Id, processed: &Processed) -> Result<(), Failure> {
        for (size, content) in &processed.smaller {
            self.put(picture, *size, content.clone()).await?;
        }
        Ok(())
    }

    /// Returns a picture's original as a file of this machine.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if it cannot be read, or is not there.
    pub async fn original(&self, picture: Id) -> Result<Original, Failure> {
        if let Some(directory) = &self.directory {
            let file = directory.join(path(picture, Size::Original).as_ref());
            let is_there = tokio::fs::try_exists(&file).await.map_err(io_failure)?;
            return is_there
                .then(|| Original::InPlace(file))
                .ok_or_else(|| not_shared(picture));
        }
        let content = self.read(picture, Size::Original).await?;
        let mut stream = content.ok_or_else(|| not_shared(picture))?.stream;
        let mut copy = self.receive().await.map_err(io_failure)?;
        while let Some(bytes) = stream.try_next().await.map_err(unavailable)? {
            copy.write(&bytes).await.map_err(io_failure)?;
        }
        let copy = copy.finish().await.map_err(io_failure)?;
        Ok(Original::Copy(copy))
    }

    async fn put(&self, picture: Id, size: Size, content: Bytes) -> Result<(), Failure> {
        let stored = self.objects.put(&path(picture, size), content.into()).await;
        stored.map(drop).map_err(unavailable)
    }

    /// Reads a file; `None` if it is not there.
    ///
    /// # Errors
    /// [`Failure::Unavailable`] if it cannot be read.
    pub async fn read(&self, picture: Id, size: Size) -> Result<Option<Content>, Failure> {
        match self.objects.get(&path(picture, size)).await {
            Ok(found) => Ok(Some(Content {
                length: found.meta.size,
                stream: found.into_stream().boxed(),
            })),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Deletes all of a picture's files; missing ones are not an error.
    ///
    /// # Errors
    /// Fails if a file cannot be deleted; others may be deleted all the same.
    pub async fn remove(&self, picture: Id) -> anyhow::Result<()> {
        for size in Size::ALL {
            match self.objects.delete(&path(picture, size)).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error).context("a picture's file cannot be deleted"),
            }
        }
        Ok(())
    }
}

fn path(picture: Id, size: Size) -> ObjectPath {
    let id = picture.to_string();
    ObjectPath::from(format!("{}/{id}-{}", subdirectory(&id), size.name()))
}

/// Returns the subdirectory of a picture: the last digits of the identifier, which are random; the
/// first are the time.
fn subdirectory(id: &str) -> &str {
    &id[id.len() - 3..]
}

fn not_shared(picture: Id) -> Failure {
    let text = format!(
        "the original of picture {picture} is not there: have all processes the same `files`?"
    );
    io_failure(io::Error::new(io::ErrorKind::NotFound, text))
}

fn local(error: io::Error) -> Error {
    Error::Generic {
        store: "LocalFileSystem",
        source: error.into(),
    }
}

/// Tells whether a file was not moved as the directory of uploads is a mount of its own.
fn crosses_devices(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = iter::successors(Some(error), |error| error.source());
    let mut reasons = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    reasons.any(|reason| reason.kind() == io::ErrorKind::CrossesDevices)
}

fn unavailable(error: Error) -> Failure {
    io_failure(io::Error::other(error))
}

fn open_directory(path: &Path) -> anyhow::Result<(Arc<dyn ObjectStore>, PathBuf)> {
    let incoming = path.join(INCOMING);
    fs::create_dir_all(&incoming)
        .with_context(|| format!("`files`: cannot make {}", incoming.display()))?;
    let objects = LocalFileSystem::new_with_prefix(path)
        .with_context(|| format!("`files`: cannot open {}", path.display()))?;
    Ok((Arc::new(objects.with_fsync(true)), incoming))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use futures_util::TryStreamExt;

    use super::*;
    use crate::model::Media;

    #[tokio::test]
    async fn what_is_stored_is_read_until_it_is_removed() {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let settings = FilesSettings::Directory(directory.path().join("files"));
        let files = Files::open(&settings).expect("the directory is made");
        let original = files.spool().expect("there is room for a file");
        fs::write(original.path(), b"as it came").expect("there is room for its content");
        let small = |size| (size, Bytes::from_static(b"smaller"));
        let processed = Processed {
            media: Media::Png,
            width: 1,
            height: 1,
            smaller: [small(Size::Small), small(Size::Medium), small(Size::Large)],
        };
        let picture = Id::new();
        files
            .store(picture, original.path(), &processed)
            .await
            .expect("they are kept");

        let content = files
            .read(picture, Size::Original)
            .await
            .expect("the directory is there");
        let content = content.expect("the file is there");
        assert_eq!(content.length, 10);
        let parts: Vec<Bytes> = content.stream.try_collect().await.expect("it is read");
        assert_eq!(parts.concat(), b"as it came");
        assert!(!original.path().exists(), "it was moved, not copied");

        files.remove(picture).await.expect("they are deleted");
        files
            .remove(picture)
            .await
            .expect("nothing is there to delete");
        for size in Size::ALL {
            let content = files
                .read(picture, size)
                .await
                .expect("the directory is there");
            assert!(content.is_none(), "{size:?}");
        }
    }

    #[tokio::test]
    async fn the_files_of_an_upload_that_takes_hours_are_no_leftovers() {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let settings = FilesSettings::Directory(directory.path().to_owned());
        let open = || Files::open(&settings).expect("the directory is made");
        let (here, elsewhere) = (open(), open());
        let complete = here.receive().await.expect("there is room for a file");
        let complete = complete.finish().await.expect("nothing is left to write");
        let left = here.spool().expect("there is room for a file");
        let hour = Duration::from_hours(1);
        for path in [&**complete, left.path()] {
            let file = File::options().write(true).open(path);
            let aged = file.and_then(|file| file.set_modified(SystemTime::now() - 2 * hour));
            aged.expect("the file is there");
        }
        for (files, leftovers) in [(here, 1), (elsewhere, 0)] {
            let swept = files.sweep_uploads(SystemTime::now() - hour).await;
            assert_eq!(swept.expect("the directory is there"), leftovers);
        }
        assert!(complete.exists() && !left.path().exists());
    }

    #[tokio::test]
    async fn an_original_is_copied_from_a_directory_of_uploads_on_another_file_system() {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let elsewhere = tempfile::tempdir_in("/dev/shm").expect("there is room in memory");
        symlink(elsewhere.path(), directory.path().join(INCOMING)).expect("it is linked");
        let settings = FilesSettings::Directory(directory.path().to_owned());
        let files = Files::open(&settings).expect("the directory is there");
        let original = files.spool().expect("there is room for a file");
        fs::write(original.path(), b"as it came").expect("there is room for its content");
        let picture = Id::new();
        files
            .store_original(picture, original.path())
            .await
            .expect("it is kept");
        let stored = files.original(picture).await.expect("it is there");
        let content = fs::read(stored.path()).expect("it is a file");
        assert_eq!(content, b"as it came");
    }
}
