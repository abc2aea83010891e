//! Clients that send or take long bodies as fast as the server does, and count the bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http2_frames::{
    ACK, DATA, END_HEADERS, END_STREAM, FRAME_BYTES_MAX, HEADERS, INITIAL_WINDOW_SIZE, PING,
    PREFACE, SETTINGS, WINDOW_UPDATE, frame, packed,
};

/// The client's side of a connection.
pub(crate) trait Client: Unpin {
    /// Returns the next bytes, and how many of them are of a long body. `None` if it has to get
    /// something before.
    fn next(&mut self) -> Option<(Bytes, usize)>;

    /// Takes bytes, and returns how many of them are of a long body.
    fn take(&mut self, bytes: &[u8]) -> usize;
}

/// A stream of a client that is always ready.
pub(crate) struct Torrent<C> {
    client: C,
    sending: Bytes,
    reader: Option<Waker>,
    moved: Arc<AtomicUsize>,
}

impl<C: Client> Torrent<C> {
    pub(crate) fn new(client: C, moved: &Arc<AtomicUsize>) -> Self {
        Self {
            client,
            sending: Bytes::new(),
            reader: None,
            moved: Arc::clone(moved),
        }
    }
}

impl<C: Client> AsyncRead for Torrent<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.sending.is_empty() {
            let Some((sending, moved)) = self.client.next() else {
                self.reader = Some(cx.waker().clone());
                return Poll::Pending;
            };
            self.sending = sending;
            self.moved.fetch_add(moved, Ordering::Relaxed);
        }
        let now = self.sending.len().min(buffer.remaining());
        buffer.put_slice(&self.sending.split_to(now));
        Poll::Ready(Ok(()))
    }
}

impl<C: Client> AsyncWrite for Torrent<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let moved = self.client.take(bytes);
        self.moved.fetch_add(moved, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Sends its head, then zeros without end if it uploads.
pub(crate) struct Http1 {
    pub(crate) head: Bytes,
    pub(crate) uploads: bool,
}

impl Client for Http1 {
    fn next(&mut self) -> Option<(Bytes, usize)> {
        static ZEROS: [u8; 64 * 1_024] = [0; 64 * 1_024];
        if !self.head.is_empty() {
            return Some((std::mem::take(&mut self.head), 0));
        }
        self.uploads
            .then_some((Bytes::from_static(&ZEROS), ZEROS.len()))
    }

    fn take(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

/// Sends one request, then zeros without end if it uploads, as far as the server's windows let it.
/// Its own are as large as they may be, which is enough for the tests.
pub(crate) struct Http2 {
    sending: BytesMut,
    received: BytesMut,
    uploads: bool,
    /// Bytes that it may send: of the connection, and of the stream.
    windows: [i64; 2],
}

impl Http2 {
    pub(crate) fn new(path: &str, uploads: bool) -> Self {
        const WINDOW_MAX: u32 = (1 << 31) - 1;
        const WINDOW_FIRST: u32 = 65_535;
        let method = if uploads { "POST" } else { "GET" };
        let fields = [
            (":method", method),
            (":scheme", "http"),
            (":authority", "test"),
            (":path", path),
        ];
        let mut settings = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        settings.extend(WINDOW_MAX.to_be_bytes());
        let wider = (WINDOW_MAX - WINDOW_FIRST).to_be_bytes();
        let mut sending = BytesMut::from(PREFACE);
        sending.extend(frame(SETTINGS, 0, 0, &settings));
        sending.extend(frame(WINDOW_UPDATE, 0, 0, &wider));
        let ends = if uploads { 0 } else { END_STREAM };
        sending.extend(frame(HEADERS, END_HEADERS | ends, 1, &packed(&fields)));
        Self {
            sending,
            received: BytesMut::new(),
            uploads,
            windows: [WINDOW_FIRST.into(); 2],
        }
    }

    /// Handles a frame, and returns how many of its bytes are of a long body.
    fn handle(&mut self, kind: u8, flags: u8, id: u32, content: &[u8]) -> usize {
        match kind {
            DATA => return content.len(),
            SETTINGS | PING if flags & ACK != 0 => {}
            PING => self.sending.extend(frame(PING, ACK, 0, content)),
            SETTINGS => {
                self.sending.extend(frame(SETTINGS, ACK, 0, &[]));
                for setting in content.chunks_exact(6) {
                    let (mut name, mut value) = setting.split_at(2);
                    if name.get_u16() == INITIAL_WINDOW_SIZE {
                        self.windows[1] = value.get_u32().into();
                    }
                }
            }
            WINDOW_UPDATE => {
                let (mut content, stream) = (content, usize::from(id > 0));
                self.windows[stream] += i64::from(content.get_u32());
            }
            _ => {}
        }
        0
    }
}

impl Client for Http2 {
    fn next(&mut self) -> Option<(Bytes, usize)> {
        if !self.sending.is_empty() {
            return Some((self.sending.split().freeze(), 0));
        }
        let bytes = i64::try_from(FRAME_BYTES_MAX).expect("it is small");
        if !self.uploads || self.windows.iter().any(|window| *window < bytes) {
            return None;
        }
        self.windows = self.windows.map(|window| window - bytes);
        let part = frame(DATA, 0, 1, &[0; FRAME_BYTES_MAX]);
        Some((part.into(), FRAME_BYTES_MAX))
    }

    fn take(&mut self, bytes: &[u8]) -> usize {
        self.received.extend_from_slice(bytes);
        let mut moved = 0;
        while let Some(&[a, b, c, kind, flags, ..]) = self.received.first_chunk::<9>() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if self.received.len() < 9 + length {
                break;
            }
            let mut header = self.received.split_to(9);
            header.advance(5);
            let id = header.get_u32();
            let content = self.received.split_to(length);
            moved += self.handle(kind, flags, id, &content);
        }
        moved
    }
}
