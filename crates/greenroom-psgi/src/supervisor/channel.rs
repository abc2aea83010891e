//! Frames over a channel to a Perl process.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::frame;

/// A received frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) payload: Vec<u8>,
}

/// A reader of the frames from a Perl process.
pub(super) struct Frames<R> {
    input: R,
    buffer: Vec<u8>,
}

impl Message {
    /// Returns the payload as text, for people.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).trim_end().to_owned()
    }

    /// Returns the payload as `N` numbers, if it is that.
    pub(super) fn numbers<const N: usize>(&self) -> Option<[u32; N]> {
        let (numbers, rest) = self.payload.as_chunks::<4>();
        let numbers: [[u8; 4]; N] = numbers.try_into().ok()?;
        rest.is_empty().then(|| numbers.map(u32::from_be_bytes))
    }

    /// Returns the error for a frame that is not allowed here.
    pub(super) fn unexpected(&self) -> io::Error {
        let kind = char::from(self.kind).escape_default();
        let bytes = self.payload.len();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("an unexpected frame `{kind}` of {bytes} bytes"),
        )
    }
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
        }
    }

    /// Returns the next frame; `None` when the other side is gone. Nothing is lost if the future is
    /// dropped.
    pub(super) async fn next(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            match self.input.read_buf(&mut self.buffer).await {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                // The other side ended with something of ours unread.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<Message>> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let Some((frame, bytes)) = frame::split(&self.buffer).map_err(invalid)? else {
            return Ok(None);
        };
        let message = Message {
            kind: frame.kind,
            payload: frame.payload.to_vec(),
        };
        self.buffer.drain(..bytes);
        Ok(Some(message))
    }
}

/// Encodes a frame with one number, or with none.
pub(super) fn frame(kind: u8, number: Option<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::frame::append(&mut bytes, kind, |out| {
        if let Some(number) = number {
            out.extend_from_slice(&number.to_be_bytes());
        }
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_come_one_by_one_and_then_none() {
        let bytes = [frame(b'F', Some(7)), frame(b'U', None)].concat();
        let mut frames = Frames::new(&bytes[..]);
        let first = frames
            .next()
            .await
            .expect("it is a frame")
            .expect("it came");
        assert_eq!((first.kind, first.numbers()), (b'F', Some([7])));
        assert_eq!(first.numbers::<2>(), None);
        let second = frames
            .next()
            .await
            .expect("it is a frame")
            .expect("it came");
        assert_eq!((second.kind, second.numbers()), (b'U', Some([])));
        assert_eq!(frames.next().await.expect("the end is no error"), None);
    }

    #[tokio::test]
    async fn a_length_out_of_bounds_is_an_error() {
        let mut frames = Frames::new(&[0_u8; 8][..]);
        let error = frames.next().await.expect_err("it is no frame");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
