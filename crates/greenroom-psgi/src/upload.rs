//! A request's body, received before a worker gets the request: a slow client holds no worker.

use std::error::Error;
use std::future::poll_fn;
use std::os::unix::ffi::OsStrExt;
use std::pin::Pin;
use std::sync::Arc;
use std::{io, iter};

use bytes::{Bytes, BytesMut};
use greenroom_server::{BodyError, BoxError};
use http_body::Body;
use http_body_util::LengthLimitError;
use tempfile::{NamedTempFile, TempPath};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::link::Input;
use crate::uploads::{Full, Held, Uploads};

/// A complete body.
#[derive(Debug)]
pub(crate) enum Upload {
    None,
    Bytes {
        bytes: Bytes,
        _held: Held,
    },
    /// The file is removed when this is dropped; a worker that has opened it can still read it.
    File {
        path: Spilled,
        bytes: u64,
    },
}

/// A file that is removed on a thread that may block, because that takes long for a large one. Its
/// bytes count until then.
#[derive(Debug)]
pub(crate) struct Spilled(Option<(TempPath, Held)>);

impl Spilled {
    fn bytes(&self) -> &[u8] {
        let path = self.0.as_ref().map(|(path, _)| path);
        path.map_or(&[], |path| path.as_os_str().as_bytes())
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        let file = self.0.take();
        tokio::task::spawn_blocking(move || drop(file));
    }
}

/// The reasons why a body could not be received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// The client is at fault.
    #[error(transparent)]
    Client(#[from] BodyError),
    #[error(transparent)]
    Full(#[from] Full),
    #[error("a request's body cannot be kept in a file: {0}")]
    File(#[from] io::Error),
}

impl UploadError {
    /// Finds the fault in the error of a body, which a router may have wrapped.
    fn of_body(error: &BoxError) -> Self {
        let first: &(dyn Error + 'static) = &**error;
        let mut causes = iter::successors(Some(first), |&error| error.source());
        let fault = causes.find_map(|cause| match cause.downcast_ref::<BodyError>() {
            Some(error) => Some(*error),
            None => cause
                .is::<LengthLimitError>()
                .then_some(BodyError::TooLarge),
        });
        Self::Client(fault.unwrap_or(BodyError::Disconnected))
    }
}

impl Upload {
    /// Receives `body`, of at most `bytes_max`: up to `memory_max` bytes are kept in memory, more
    /// in a file, as long as `uploads` allow it.
    pub(crate) async fn receive<B>(
        body: B,
        bytes_max: u64,
        memory_max: usize,
        uploads: &Arc<Uploads>,
    ) -> Result<Self, UploadError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        if body.is_end_stream() {
            return Ok(Self::None);
        }
        if body.size_hint().lower() > bytes_max {
            return Err(BodyError::TooLarge.into());
        }
        let mut reader = BodyReader {
            body,
            left: bytes_max,
            held: uploads.begin(),
        };
        let mut kept = BytesMut::new();
        while let Some(chunk) = reader.next().await? {
            if kept.len() + chunk.len() > memory_max {
                return spill(&kept, &chunk, reader).await;
            }
            if kept.is_empty() && reader.body.is_end_stream() {
                // Most bodies come as one chunk, which need not be copied.
                return Ok(Self::Bytes {
                    bytes: chunk,
                    _held: reader.held,
                });
            }
            kept.extend_from_slice(&chunk);
        }
        Ok(Self::Bytes {
            bytes: kept.freeze(),
            _held: reader.held,
        })
    }

    pub(crate) fn input(&self) -> Input<'_> {
        match self {
            Self::None => Input::Bytes(&[]),
            Self::Bytes { bytes, .. } => Input::Bytes(bytes),
            Self::File { path, .. } => Input::File(path.bytes()),
        }
    }

    /// Returns the length for `CONTENT_LENGTH`: `None` if the request has no body.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes { bytes, .. } => Some(bytes.len() as u64),
            Self::File { bytes, .. } => Some(*bytes),
        }
    }
}

/// A reader of a body that may have `left` more bytes.
struct BodyReader<B> {
    body: B,
    left: u64,
    held: Held,
}

impl<B> BodyReader<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    async fn next(&mut self) -> Result<Option<Bytes>, UploadError> {
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let frame = frame.transpose();
            let frame = frame.map_err(|error| UploadError::of_body(&error.into()))?;
            match frame.map(http_body::Frame::into_data) {
                None => return Ok(None),
                Some(Ok(bytes)) => {
                    let left = self.left.checked_sub(bytes.len() as u64);
                    self.left = left.ok_or(BodyError::TooLarge)?;
                    self.held.grow(bytes.len())?;
                    return Ok(Some(bytes));
                }
                Some(Err(_trailers)) => {}
            }
        }
    }
}

/// Receives the rest into a file, on threads that may block.
async fn spill<B>(
    kept: &[u8],
    chunk: &[u8],
    mut reader: BodyReader<B>,
) -> Result<Upload, UploadError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let (file, path) = tokio::task::spawn_blocking(NamedTempFile::new)
        .await
        .map_err(io::Error::other)??
        .into_parts();
    let mut file = File::from_std(file);
    file.write_all(kept).await?;
    file.write_all(chunk).await?;
    let mut bytes = (kept.len() + chunk.len()) as u64;
    while let Some(chunk) = reader.next().await? {
        file.write_all(&chunk).await?;
        bytes += chunk.len() as u64;
    }
    file.flush().await?;
    let path = Spilled(Some((path, reader.held)));
    Ok(Upload::File { path, bytes })
}
