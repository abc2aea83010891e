//! Multipart forms with pictures, read chunk by chunk, for the API and the pages.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use axum::BoxError;
use axum::body::{Body, BodyDataStream};
use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use bytesize::ByteSize;
use futures_util::{Stream, StreamExt};
use http::StatusCode;
use tempfile::TempPath;

use crate::Failure;
use crate::files::Files;
use crate::images::io_failure;
use crate::model::TextError;

/// The bytes that may arrive before the head of a part is complete, the framing around it included.
const HEAD_BYTES_MAX: u64 = 256 * 1024;
/// The largest text of a part, in bytes: a caption's 500 characters of up to four bytes.
const TEXT_BYTES_MAX: usize = 2_000;
/// The largest chunk that the form's parser gets at once, in bytes.
const CHUNK_BYTES_MAX: usize = 64 * 1024;

/// Writes a part to a temporary file as it arrives.
pub(crate) async fn spool(
    files: &Files,
    mut part: Field<'_>,
    bytes_max: ByteSize,
) -> Result<Arc<TempPath>, Failure> {
    let mut file = files.receive().await.map_err(io_failure)?;
    let mut bytes = 0;
    while let Some(chunk) = part.chunk().await.map_err(|error| refused(&error))? {
        bytes += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        if bytes > bytes_max.as_u64() {
            let text = format!("a picture has at most {bytes_max}");
            return Err(Failure::TooLarge(text));
        }
        file.write(&chunk).await.map_err(io_failure)?;
    }
    file.finish().await.map_err(io_failure)
}

/// Reads a part as a text.
pub(crate) async fn text(mut part: Field<'_>, field: &'static str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = part.chunk().await.map_err(|error| refused(&error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > TEXT_BYTES_MAX {
            return Err(wrong(field, "0 to 500 characters are allowed").into());
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong(field, "it must be UTF-8").into())
}

fn wrong(field: &'static str, rule: &str) -> TextError {
    TextError {
        field,
        rule: rule.to_owned(),
    }
}

/// Converts an error of a form that is malformed, or whose end never came.
pub(crate) fn refused(error: &MultipartError) -> Failure {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Failure::TooLarge(error.body_text());
    }
    let mut reason: &dyn Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    Failure::Malformed(format!("the form cannot be read: {reason}"))
}

/// Limits a form to one chunk at a time.
///
/// The form's parser takes all that there is before it looks at it, and waits for the end of a
/// part's head however long that is; so it gets one chunk at a time, and only [`HEAD_BYTES_MAX`]
/// while it reads a head.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// The bytes that may still arrive.
    rest: Arc<AtomicU64>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            rest: Arc::new(AtomicU64::new(HEAD_BYTES_MAX)),
        }
    }
}

impl Pace {
    /// Reads the form of a request.
    pub(crate) async fn form(&self, request: Request) -> Result<Multipart, Failure> {
        let request = request.map(|body| self.slow_down(body));
        Multipart::from_request(request, &()).await.map_err(|_| {
            let text = "send multipart/form-data, with a part `picture` for each picture";
            Failure::Unsupported(text.to_owned())
        })
    }

    fn slow_down(&self, body: Body) -> Body {
        Body::from_stream(Paced {
            body: body.into_data_stream(),
            chunk: Bytes::new(),
            rest: Arc::clone(&self.rest),
            has_given: false,
        })
    }

    /// Announces the head of a part, which is limited.
    pub(crate) fn expect_head(&self) {
        self.rest.store(HEAD_BYTES_MAX, Ordering::Relaxed);
    }

    /// Announces the content of a part, whose length the caller limits.
    pub(crate) fn expect_content(&self) {
        self.rest.store(u64::MAX, Ordering::Relaxed);
    }
}

struct Paced {
    body: BodyDataStream,
    chunk: Bytes,
    rest: Arc<AtomicU64>,
    has_given: bool,
}

impl Stream for Paced {
    // The body's own error, in which the form's parser looks for that of a body limit.
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_given {
            self.has_given = false;
            // Pending after each chunk: the parser would else take the whole body before it parses.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.chunk.is_empty() {
            match ready!(self.body.poll_next_unpin(cx)) {
                Some(Ok(chunk)) => self.chunk = chunk,
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into_inner()))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.chunk.len().min(CHUNK_BYTES_MAX);
        let chunk = self.chunk.split_to(length);
        self.has_given = true;
        Poll::Ready(Some(self.allow(chunk)))
    }
}

impl Paced {
    fn allow(&self, chunk: Bytes) -> Result<Bytes, BoxError> {
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        let rest = self.rest.load(Ordering::Relaxed).checked_sub(length);
        let rest = rest.ok_or("the head of a part is too long")?;
        self.rest.store(rest, Ordering::Relaxed);
        Ok(chunk)
    }
}
