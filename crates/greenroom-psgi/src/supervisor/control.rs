//! A worker's control connection.

use std::io;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::channel::{Frames, frame};
use super::held::Held;
use super::shared::Shared;

/// A worker that is ready and takes no requests yet.
pub(super) struct ReadyWorker {
    pub(super) held: Held,
    pub(super) control: Control,
}

/// A worker's control connection.
pub(super) struct Control {
    pub(super) frames: Frames<OwnedReadHalf>,
    pub(super) output: OwnedWriteHalf,
}

impl Control {
    /// Connects to a worker; `None` if it is gone already.
    pub(super) async fn open(shared: &Shared, key: u32) -> io::Result<Option<Self>> {
        let stream = match UnixStream::connect(shared.socket(key)).await {
            Ok(stream) => stream,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (input, output) = stream.into_split();
        let mut control = Self {
            frames: Frames::new(input),
            output,
        };
        match control.output.write_all(&frame(b'C', None)).await {
            Ok(()) => Ok(Some(control)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotFound
            | io::ErrorKind::BrokenPipe
    )
}
