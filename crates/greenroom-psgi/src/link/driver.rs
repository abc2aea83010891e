//! The task that reads and writes for a link.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::UnixStream;

use super::connection::{Link, State};
use super::entry::{Lost, first_held};
use super::parse::BadFrame;
use super::recall::Watch;
use crate::frame::{self, BadLength};

/// The bytes that are read from a worker at once.
const READ_BYTES: usize = 65_536;

/// The reasons why a link ends.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the worker is gone")]
    Ended,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the worker broke the protocol: {0}")]
    Frame(#[from] BadFrame),
    #[error("the worker broke the protocol: {0}")]
    Length(#[from] BadLength),
}

/// Drives a link to its end, which comes with the worker's.
pub(super) async fn drive(link: &Link) {
    let broken = match open(link).await {
        Ok(mut stream) => {
            link.state.set(State::Open);
            let mut input = Vec::with_capacity(READ_BYTES);
            let mut watch = Watch::new();
            let exchanged = poll_fn(|cx| {
                // In this order: frames that are here already show whether the worker is
                // blocked.
                let exchanged = link.poll_exchange(&mut stream, &mut input, cx);
                link.poll_recall(&mut watch, cx);
                exchanged
            });
            tokio::select! {
                // The frames that a worker sent before its end are read before the end counts.
                biased;
                broken = exchanged => broken,
                () = link.worker.gone() => Broken::Ended,
            }
        }
        Err(error) => Broken::Io(error),
    };
    link.end(&broken);
}

async fn open(link: &Link) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(&link.worker.socket).await?;
    let mut out = link.out.borrow_mut();
    let waiting = std::mem::take(&mut *out);
    frame::append(&mut out, b'L', |_| {});
    out.extend_from_slice(&waiting);
    Ok(stream)
}

impl Link {
    fn poll_exchange(
        &self,
        stream: &mut UnixStream,
        input: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Poll<Broken> {
        let exchanged = self.poll_input(stream, input, cx).and_then(|()| {
            self.settle();
            self.poll_output(stream, cx)
        });
        if let Err(broken) = exchanged {
            return Poll::Ready(broken);
        }
        self.driver.replace(Some(cx.waker().clone()));
        Poll::Pending
    }

    fn poll_input(
        &self,
        stream: &mut UnixStream,
        input: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Result<(), Broken> {
        loop {
            input.reserve(READ_BYTES);
            let Poll::Ready(read) = pin!(stream.read_buf(input)).poll(cx) else {
                return Ok(());
            };
            if read? == 0 {
                return Err(Broken::Ended);
            }
            let taken = self.take_frames(input)?;
            input.drain(..taken);
        }
    }

    fn take_frames(&self, input: &[u8]) -> Result<usize, Broken> {
        let mut taken = 0;
        while let Some((frame, length)) = frame::split(&input[taken..])? {
            self.take_frame(frame)?;
            taken += length;
        }
        Ok(taken)
    }

    fn poll_output(&self, stream: &mut UnixStream, cx: &mut Context<'_>) -> Result<(), Broken> {
        let mut out = self.out.borrow_mut();
        let mut sent = 0;
        while sent < out.len() {
            match Pin::new(&mut *stream).poll_write(cx, &out[sent..]) {
                Poll::Ready(bytes) => sent += bytes?,
                Poll::Pending => break,
            }
        }
        out.drain(..sent);
        Ok(())
    }

    /// Ends all requests that still wait for the worker.
    fn end(&self, broken: &Broken) {
        let was = self.state.replace(State::Ended);
        match broken.blame(was) {
            Blame::Ended => {
                tracing::debug!(error = %broken, pid = %self.worker.pid, "a worker is given up");
                self.pool.note_lost(self.worker.key);
            }
            Blame::Breach => {
                tracing::error!(error = %broken, pid = %self.worker.pid, "a worker is killed");
                self.pool.condemn(self.worker.key);
            }
            Blame::Ours => {
                let pid = self.worker.pid;
                tracing::error!(error = %broken, %pid, "a worker cannot be reached");
            }
        }
        self.settle();
        let released = self.pool.released(self.worker.key);
        let mut entries = self.entries.borrow_mut();
        let mut settlement = self.settlement.borrow_mut();
        let first = first_held(&entries);
        for (_, entry) in entries.iter_mut().filter(|(_, entry)| !entry.is_over()) {
            let lost = match was {
                State::Connecting => Lost::Unsent,
                // The first of this link may be behind another link's.
                _ if entry.is_behind_as_of(released) => Lost::Behind,
                _ if !entry.phase.holds_run() || Some(entry.sequence) == first => Lost::Begun,
                _ => Lost::Behind,
            };
            entry.lose(lost, &mut settlement);
        }
        entries.retain(|_, entry| !entry.is_abandoned());
        drop((entries, settlement));
        self.settle();
    }
}

/// The side that is to blame for a link's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blame {
    /// The worker is ending. The supervisor learns how it ends, so it is not killed for this.
    Ended,
    /// The worker, which broke the protocol.
    Breach,
    /// This process, such as by too many open descriptors.
    Ours,
}

impl Broken {
    fn blame(&self, was: State) -> Blame {
        match self {
            Self::Frame(_) | Self::Length(_) => Blame::Breach,
            Self::Io(error) if was == State::Connecting => match error.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Blame::Ended,
                _ => Blame::Ours,
            },
            Self::Io(_) | Self::Ended => Blame::Ended,
        }
    }
}
