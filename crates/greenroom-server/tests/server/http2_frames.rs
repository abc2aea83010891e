//! An HTTP/2 client that writes and reads frames, and so can send what no library would.

use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::Stream;
use crate::over;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const ACK: u8 = 1;
/// Bytes of a frame's content at most, unless another size is agreed on.
pub(crate) const FRAME_BYTES_MAX: usize = 16_384;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
/// The beginning of a client's connection.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) struct Frames {
    stream: Box<dyn Stream>,
}

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) id: u32,
    pub(crate) content: Vec<u8>,
}

impl Frames {
    /// Connects, and sends the preface alone.
    pub(crate) async fn connect(path: &Path) -> Self {
        Self::over(over::connect(path).await).await
    }

    /// The same over a stream that is there.
    pub(crate) async fn over(mut stream: Box<dyn Stream>) -> Self {
        stream.write_all(PREFACE).await.unwrap();
        Self { stream }
    }

    /// Connects, and sends settings as well: of each stream's window.
    pub(crate) async fn with_window(path: &Path, window: u32) -> Self {
        let mut frames = Self::connect(path).await;
        frames.set_window(window).await;
        frames
    }

    /// Sends settings: of each stream's window.
    pub(crate) async fn set_window(&mut self, window: u32) {
        let mut settings = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        settings.extend(window.to_be_bytes());
        self.send(SETTINGS, 0, 0, &settings).await;
    }

    pub(crate) async fn send(&mut self, kind: u8, flags: u8, id: u32, content: &[u8]) {
        self.send_all(&frame(kind, flags, id, content)).await;
    }

    /// Sends any number of frames at once: whether the server took them.
    pub(crate) async fn send_all(&mut self, frames: &[u8]) -> bool {
        // A server that has closed takes nothing.
        self.stream.write_all(frames).await.is_ok()
    }

    /// Sends a request without a body.
    pub(crate) async fn request(&mut self, id: u32, fields: &[(&str, &str)]) {
        let flags = END_STREAM | END_HEADERS;
        self.send(HEADERS, flags, id, &packed(fields)).await;
    }

    /// Sends a head that is longer than a frame.
    pub(crate) async fn send_head(&mut self, id: u32, flags: u8, head: &[u8]) {
        let (first, rest) = head.split_at(head.len().min(FRAME_BYTES_MAX));
        self.send(HEADERS, flags, id, first).await;
        for part in rest.chunks(FRAME_BYTES_MAX) {
            self.continuation(id, part).await;
        }
        self.send(CONTINUATION, END_HEADERS, id, &[]).await;
    }

    /// Sends more of a head, which does not end with it.
    pub(crate) async fn continuation(&mut self, id: u32, part: &[u8]) {
        self.send(CONTINUATION, 0, id, part).await;
    }

    pub(crate) async fn get(&mut self, id: u32, path: &str) {
        let fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "test"),
            (":path", path),
        ];
        self.request(id, &fields).await;
    }

    /// Opens a window by so many bytes: a stream's, or with 0 the connection's.
    pub(crate) async fn open(&mut self, id: u32, bytes: u32) {
        self.send(WINDOW_UPDATE, 0, id, &bytes.to_be_bytes()).await;
    }

    /// The next frame that is not about the connection's settings; pings are replied to.
    /// `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            let mut header = [0; 9];
            self.stream.read_exact(&mut header).await.ok()?;
            let [a, b, c, kind, flags, id @ ..] = header;
            let mut content = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.stream.read_exact(&mut content).await.ok()?;
            match kind {
                SETTINGS if flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[]).await,
                PING if flags & ACK == 0 => self.send(PING, ACK, 0, &content).await,
                SETTINGS | PING | WINDOW_UPDATE => {}
                kind => {
                    let id = u32::from_be_bytes(id);
                    return Some(Frame {
                        kind,
                        flags,
                        id,
                        content,
                    });
                }
            }
        }
    }

    /// The frames up to the end of the connection.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut rest = Vec::new();
        while let Some(frame) = self.next().await {
            rest.push(frame);
        }
        rest
    }

    /// Returns the end of the connection, once all that comes was read.
    pub(crate) async fn end(mut self) -> std::io::Result<()> {
        self.stream.read_to_end(&mut Vec::new()).await.map(|_| ())
    }

    /// The body of the response on this stream, which may be one of many.
    pub(crate) async fn said(&mut self, id: u32) -> String {
        let mut body = Vec::new();
        while let Some(frame) = self.next().await {
            if frame.id != id {
                continue;
            }
            if frame.kind == DATA {
                body.extend(frame.content);
            }
            if frame.kind == RST_STREAM || frame.flags & END_STREAM != 0 {
                break;
            }
        }
        String::from_utf8(body).unwrap()
    }

    /// The response on this stream, the only one to come: its status, or 0 if it is reset, and its
    /// body.
    pub(crate) async fn response(&mut self, id: u32) -> (u16, String) {
        let mut status = 0;
        let mut body = Vec::new();
        while let Some(frame) = self.next().await {
            if frame.id != id && frame.kind != GOAWAY {
                continue;
            }
            match frame.kind {
                HEADERS => status = status_of(&frame.content),
                DATA => body.extend(frame.content),
                RST_STREAM | GOAWAY => return (status, String::from_utf8(body).unwrap()),
                _ => {}
            }
            if frame.flags & END_STREAM != 0 {
                break;
            }
        }
        (status, String::from_utf8(body).unwrap())
    }
}

pub(crate) fn frame(kind: u8, flags: u8, id: u32, content: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(content.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(id.to_be_bytes());
    frame.extend(content);
    frame
}

/// Fields as literals without an index (RFC 7541, 6.2.2).
pub(crate) fn packed(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            append_length(&mut block, text.len());
            block.extend(text.as_bytes());
        }
    }
    block
}

/// An integer with a prefix of seven bits (RFC 7541, 5.1).
fn append_length(block: &mut Vec<u8>, length: usize) {
    let Some(mut more) = length.checked_sub(127) else {
        return block.push(u8::try_from(length).unwrap());
    };
    block.push(127);
    while more >= 128 {
        block.push(u8::try_from(more % 128).unwrap() | 128);
        more /= 128;
    }
    block.push(u8::try_from(more).unwrap());
}

/// The status at the beginning of the first response of a connection: one of the static table
/// (RFC 7541, appendix A), or a literal in Huffman's code (appendix B).
fn status_of(block: &[u8]) -> u16 {
    let table = [200, 204, 206, 304, 400, 404, 500];
    if let Some(index) = block[0].checked_sub(0x88) {
        return table[usize::from(index)];
    }
    let length = usize::from(block[1] & 0x7f);
    let bits: Vec<u16> = block[2..2 + length]
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| u16::from(byte >> bit & 1)))
        .collect();
    let number = |bits: &[u16]| bits.iter().fold(0, |number, bit| 2 * number + bit);
    let mut at = 0;
    let mut status = 0;
    for _ in 0..3 {
        let short = number(&bits[at..at + 5]);
        let digit = if short <= 2 {
            at += 5;
            short
        } else {
            at += 6;
            number(&bits[at - 6..at]) - 0b01_1001 + 3
        };
        status = 10 * status + digit;
    }
    status
}
