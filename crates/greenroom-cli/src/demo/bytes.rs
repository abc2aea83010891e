//! `/bytes/{n}`: a download of any length that costs no memory.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::number::{self, Rejection};

const N_MAX: u64 = 1 << 40;
const CHUNK_BYTES: usize = 64 * 1024;

/// The chunk that every download repeats. It is in the program's read-only data.
static CHUNK: [u8; CHUNK_BYTES] = alphabet();

type Download = ([(HeaderName, &'static str); 1], Body);

pub(super) async fn respond(Path(n): Path<String>) -> Result<Download, Rejection> {
    let remaining = number::parse(&n, N_MAX)?;
    Ok((
        [(CONTENT_TYPE, "application/octet-stream")],
        Body::new(Pattern { remaining }),
    ))
}

/// Returns the lower-case alphabet and a line feed, repeated.
#[expect(clippy::large_stack_arrays, reason = "it is evaluated while compiling")]
const fn alphabet() -> [u8; CHUNK_BYTES] {
    let line = *b"abcdefghijklmnopqrstuvwxyz\n";
    let mut chunk = [0; CHUNK_BYTES];
    let mut index = 0;
    while index < CHUNK_BYTES {
        chunk[index] = line[index % line.len()];
        index += 1;
    }
    chunk
}

/// A body of exactly `remaining` bytes, so that its response has a Content-Length.
struct Pattern {
    remaining: u64,
}

impl http_body::Body for Pattern {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.remaining == 0 {
            return Poll::Ready(None);
        }
        let length = usize::try_from(self.remaining).map_or(CHUNK_BYTES, |n| n.min(CHUNK_BYTES));
        self.remaining -= length as u64;
        let chunk = Bytes::from_static(&CHUNK[..length]);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}
